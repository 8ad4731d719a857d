package deviceplugin

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// OfferCDI writes a CDI spec into dir, of kind example.com/dev, with one device for each id: /dev/nvidia0, 1 … in that order,
// which are virtual terminals of this machine.
func OfferCDI(dir string, ids []string) error {
	type object = map[string]any
	var devices []object
	for i, id := range ids {
		devices = append(devices, object{"name": id, "containerEdits": object{"deviceNodes": []object{{
			"path": fmt.Sprintf("/dev/nvidia%d", i), "hostPath": fmt.Sprintf("/dev/tty%d", 20+i), "permissions": "rw"}}}})
	}
	spec, err := json.Marshal(object{"cdiVersion": "0.6.0", "kind": "example.com/dev", "devices": devices})
	if err != nil {
		return err
	}
	temp := filepath.Join(dir, ".example.tmp")
	if err := os.WriteFile(temp, spec, 0o644); err != nil {
		return err
	}
	return os.Rename(temp, filepath.Join(dir, "example.com.json"))
}
