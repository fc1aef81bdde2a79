package main

import (
	"encoding/csv"
	"strconv"
	"strings"
)

// parseNvidiaSMI reads the answer of nvidia-smi to the query of askGPUs: one
// line a GPU, memory in MiB, "[N/A]" for what it does not know.
func parseNvidiaSMI(out []byte) []gpuFact {
	const mib = 1 << 20
	var list []gpuFact
	for line := range strings.Lines(string(out)) {
		f := strings.Split(line, ",")
		if len(f) != 5 {
			continue
		}
		for i := range f {
			f[i] = strings.TrimSpace(f[i])
		}
		list = append(list, gpuFact{name: f[0], driver: f[1], total: smiNumber(f[2], mib), used: smiNumber(f[3], mib), busy: smiNumber(f[4], 0.01)})
	}
	return list
}

// parseROCmSMI reads the CSV of rocm-smi, whose columns have long names that
// differ from version to version; a "system" row holds the driver.
func parseROCmSMI(out []byte) []gpuFact {
	r := csv.NewReader(strings.NewReader(string(out)))
	r.FieldsPerRecord = -1
	rows, err := r.ReadAll()
	if err != nil {
		return nil
	}
	var list []gpuFact
	var header []string
	driver := ""
	for _, row := range rows {
		if len(row) == 0 {
			continue
		}
		if row[0] == "device" {
			header = row
			continue
		}
		cell := func(names ...string) string {
			for i, h := range header {
				for _, n := range names {
					if i < len(row) && strings.Contains(strings.ToLower(h), n) {
						return strings.TrimSpace(row[i])
					}
				}
			}
			return ""
		}
		if !strings.HasPrefix(row[0], "card") {
			if d := cell("driver version"); d != "" {
				driver = d
			}
			continue
		}
		list = append(list, gpuFact{name: cell("card series", "card model", "product name"), driver: cell("driver version"),
			total: smiNumber(cell("total memory"), 1), used: smiNumber(cell("used memory"), 1), busy: smiNumber(cell("gpu use"), 0.01)})
	}
	for i := range list {
		if list[i].driver == "" {
			list[i].driver = driver
		}
	}
	return list
}

// smiNumber reads a number in a unit, -1 if it is none.
func smiNumber(s string, unit float64) float64 {
	v, err := strconv.ParseFloat(s, 64)
	if err != nil || v < 0 {
		return -1
	}
	return v * unit
}
