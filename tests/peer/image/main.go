// Judges bcd's image with the library that registries' clients are made of.
//
//	image -layout DIR -spdx FILE -twin DIGEST
//	image -layout DIR -flat                     its files as one tar on stdout
//
// One line a case: "PASS name", "FAIL name: why"; exit status 1 when one failed.
package main

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

const (
	maxCompressed = 25 << 20
	listPath      = "usr/share/doc/bcd/bcd.spdx.json"
)

type subject struct {
	index  v1.ImageIndex
	image  v1.Image
	files  map[string]*tar.Header
	sums   map[string]string // of regular files
	spdx   []byte
	inside []byte // the list that the image itself has
	twin   string
}

// proves: HOSTED-13 HOSTED-30 HOSTED-35 HOSTED-36 HOSTED-44
var cases = []struct {
	name string
	run  func(s *subject) error
}{
	{"every digest, size and layer is as the manifest says", func(s *subject) error { return validate.Image(s.image) }},
	{"the index names one image, for this architecture", oneImage},
	{"another build elsewhere gives the same digest", sameDigest},
	{"compressed it stays below 25 MiB", isSmall},
	{"it starts bcd, as root, with nothing else set", startsBcd},
	{"nothing can be executed but bcd and the loader", onlyBcdRuns},
	{"every file is root's, with no set-user-id and no writable folder but /tmp", isPlain},
	{"the SPDX list names every file with its sum, and is in the image", listIsComplete},
	{"every package has its copyright file", hasCopyrights},
}

func oneImage(s *subject) error {
	manifest, err := s.index.IndexManifest()
	if err != nil {
		return err
	}
	config, err := s.image.ConfigFile()
	if err != nil {
		return err
	}
	if len(manifest.Manifests) != 1 || manifest.Manifests[0].Platform == nil ||
		manifest.Manifests[0].Platform.Architecture != config.Architecture || config.OS != "linux" {
		return fmt.Errorf("manifests %v, config %s/%s", manifest.Manifests, config.OS, config.Architecture)
	}
	return nil
}

func sameDigest(s *subject) error {
	digest, err := s.image.Digest()
	if err == nil && digest.String() != s.twin {
		err = fmt.Errorf("%s here, %s elsewhere", digest, s.twin)
	}
	return err
}

func isSmall(s *subject) error {
	layers, err := s.image.Layers()
	if err != nil {
		return err
	}
	var total int64
	for _, layer := range layers {
		size, err := layer.Size()
		if err != nil {
			return err
		}
		total += size
	}
	if total == 0 || total > maxCompressed {
		return fmt.Errorf("%d bytes", total)
	}
	return nil
}

func startsBcd(s *subject) error {
	file, err := s.image.ConfigFile()
	if err != nil {
		return err
	}
	config := file.Config
	if !slices.Equal(config.Entrypoint, []string{"/usr/bin/bcd"}) || len(config.Cmd) != 0 || config.User != "" ||
		!slices.Equal(config.Env, []string{"PATH=/usr/bin:/usr/sbin"}) {
		return fmt.Errorf("entrypoint %q, command %q, user %q, environment %q", config.Entrypoint, config.Cmd, config.User, config.Env)
	}
	if config.Labels["bcd.dev/release-sequence"] != "7" || config.Labels["org.opencontainers.image.version"] != "9.8.7-test" {
		return fmt.Errorf("labels %v", config.Labels)
	}
	return nil
}

func onlyBcdRuns(s *subject) error {
	var found []string
	for name, header := range s.files {
		if header.Typeflag == tar.TypeReg && header.Mode&0o111 != 0 {
			found = append(found, name)
		}
	}
	slices.Sort(found)
	if len(found) != 2 || found[0] != "usr/bin/bcd" || !strings.Contains(found[1], "/ld-linux") {
		return fmt.Errorf("these: %v", found)
	}
	return nil
}

func isPlain(s *subject) error {
	for name, header := range s.files {
		if header.Uid != 0 || header.Gid != 0 || header.Uname != "" || header.Mode&0o6000 != 0 {
			return fmt.Errorf("%s: %d:%d %q, mode %o", name, header.Uid, header.Gid, header.Uname, header.Mode)
		}
		if header.Typeflag != tar.TypeSymlink && header.Mode&0o022 != 0 && name != "tmp" {
			return fmt.Errorf("%s: mode %o", name, header.Mode)
		}
	}
	return nil
}

func listIsComplete(s *subject) error {
	var list struct {
		Files []struct {
			FileName  string
			Checksums []struct{ Algorithm, ChecksumValue string }
		}
	}
	if err := json.Unmarshal(s.spdx, &list); err != nil {
		return err
	}
	if string(s.spdx) != string(s.inside) {
		return errors.New("the list beside the archive isn't the one in the image")
	}
	listed := map[string]string{}
	for _, file := range list.Files {
		for _, sum := range file.Checksums {
			if sum.Algorithm == "SHA256" {
				listed[strings.TrimPrefix(file.FileName, "./")] = sum.ChecksumValue
			}
		}
	}
	for name, sum := range s.sums {
		if name != listPath && listed[name] != sum {
			return fmt.Errorf("%s: %s in the image, %q in the list", name, sum, listed[name])
		}
	}
	if len(listed) != len(s.sums)-1 || len(listed) < 40 {
		return fmt.Errorf("%d listed, %d in the image", len(listed), len(s.sums))
	}
	return nil
}

func hasCopyrights(s *subject) error {
	count := 0
	for name := range s.files {
		if package_, ok := strings.CutPrefix(name, "var/lib/dpkg/status.d/"); ok {
			count++
			if s.files["usr/share/doc/"+package_+"/copyright"] == nil {
				return fmt.Errorf("%s has none", package_)
			}
		}
	}
	if count < 20 || s.files["usr/share/doc/bcd/copyright"] == nil {
		return fmt.Errorf("%d packages", count)
	}
	return nil
}

func open(folder string) (v1.ImageIndex, v1.Image, error) {
	index, err := layout.ImageIndexFromPath(folder)
	if err != nil {
		return nil, nil, err
	}
	manifest, err := index.IndexManifest()
	if err != nil || len(manifest.Manifests) == 0 {
		return nil, nil, fmt.Errorf("no image in the index (%v)", err)
	}
	image, err := index.Image(manifest.Manifests[0].Digest)
	return index, image, err
}

func load(folder, spdx, twin string) (*subject, error) {
	s := &subject{files: map[string]*tar.Header{}, sums: map[string]string{}, twin: twin}
	var err error
	if s.index, s.image, err = open(folder); err != nil {
		return nil, err
	}
	if s.spdx, err = os.ReadFile(spdx); err != nil {
		return nil, err
	}
	flat := mutate.Extract(s.image)
	defer flat.Close()
	for reader := tar.NewReader(flat); ; {
		header, err := reader.Next()
		if err == io.EOF {
			return s, nil
		}
		if err != nil {
			return nil, err
		}
		name := strings.TrimSuffix(header.Name, "/")
		s.files[name] = header
		if header.Typeflag != tar.TypeReg {
			continue
		}
		data, err := io.ReadAll(reader)
		if err != nil {
			return nil, err
		}
		sum := sha256.Sum256(data)
		s.sums[name] = hex.EncodeToString(sum[:])
		if name == listPath {
			s.inside = data
		}
	}
}

func main() {
	folder := flag.String("layout", "", "the unpacked archive")
	spdx := flag.String("spdx", "", "the list beside it")
	twin := flag.String("twin", "", "the digest that another build printed")
	flat := flag.Bool("flat", false, "write its files as one tar instead")
	flag.Parse()
	if *flat {
		_, image, err := open(*folder)
		if err == nil {
			_, err = io.Copy(os.Stdout, mutate.Extract(image))
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "image:", err)
			os.Exit(1)
		}
		return
	}
	s, err := load(*folder, *spdx, *twin)
	if err != nil {
		fmt.Println("FAIL read the image:", err)
		os.Exit(1)
	}
	os.Exit(judge(s))
}

func judge(s *subject) int {
	status := 0
	for _, c := range cases {
		if err := c.run(s); err != nil {
			fmt.Printf("FAIL %s: %v\n", c.name, err)
			status = 1
			continue
		}
		fmt.Println("PASS", c.name)
	}
	return status
}
