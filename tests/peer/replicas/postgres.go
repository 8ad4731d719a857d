package main

import (
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Postgres is a server on which databases may be made: a given one, or one of our own in a folder.
type Postgres struct {
	conninfo string
	dir      string
	server   *exec.Cmd
}

func StartPostgres(conninfo string) (*Postgres, error) {
	if conninfo != "" {
		return &Postgres{conninfo: conninfo}, nil
	}
	versions, err := filepath.Glob("/usr/lib/postgresql/*/bin")
	if err != nil || len(versions) == 0 {
		return nil, fmt.Errorf("no PostgreSQL server is installed: apt-get install -y postgresql")
	}
	sort.Strings(versions)
	programs := versions[len(versions)-1]
	dir, err := os.MkdirTemp("/tmp", "bc-postgres-")
	if err != nil {
		return nil, err
	}
	p := &Postgres{dir: dir, conninfo: "host=" + dir + " user=postgres dbname=postgres"}
	var who *syscall.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if os.Getuid() == 0 { // initdb refuses to run as root
		u, err := user.Lookup("postgres")
		if err != nil {
			return nil, err
		}
		uid, _ := strconv.Atoi(u.Uid)
		gid, _ := strconv.Atoi(u.Gid)
		if err := os.Chown(dir, uid, gid); err != nil {
			return nil, err
		}
		who.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	}
	data := filepath.Join(dir, "data")
	initdb := exec.Command(programs+"/initdb", "-D", data, "-U", "postgres", "-A", "trust", "-N", "--locale=C", "--encoding=UTF8")
	initdb.SysProcAttr, initdb.Dir = who, "/"
	if out, err := initdb.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("initdb: %v: %s", err, out)
	}
	p.server = exec.Command(programs+"/postgres", "-D", data, "-k", dir, "-c", "listen_addresses=", "-c", "fsync=off", "-c", "max_connections=200")
	p.server.SysProcAttr, p.server.Dir = who, "/"
	if err := p.server.Start(); err != nil {
		return nil, err
	}
	for i := 0; i < 300; i++ {
		if _, err = p.SQL("postgres", "SELECT 1"); err == nil {
			return p, nil
		}
		time.Sleep(100 * time.Millisecond)
	}
	p.Stop()
	return nil, fmt.Errorf("PostgreSQL did not start: %w", err)
}

func (p *Postgres) Stop() {
	if p.server != nil {
		p.server.Process.Signal(syscall.SIGINT) // its fast shutdown
		p.server.Wait()
	}
	if p.dir != "" {
		os.RemoveAll(p.dir)
	}
}

// Conninfo names one database of the server.
func (p *Postgres) Conninfo(database string) string {
	var kept []string
	for _, word := range strings.Fields(p.conninfo) {
		if !strings.HasPrefix(word, "dbname=") {
			kept = append(kept, word)
		}
	}
	return strings.Join(append(kept, "dbname="+database), " ")
}

func (p *Postgres) SQL(database, statement string) (string, error) {
	out, err := exec.Command("psql", "-XAtq", "-v", "ON_ERROR_STOP=1", p.Conninfo(database), "-c", statement).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s: %v: %s", statement, err, out)
	}
	return strings.TrimSpace(string(out)), nil
}
