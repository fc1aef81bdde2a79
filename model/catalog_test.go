package model

import (
	"regexp"
	"strings"
	"testing"

	"planner/internal/evidence/must"
)

func catalog() *Catalog {
	return must.Get(NewCatalog())
}

// Every row that a published or separately derived parameter count exists for must be
// counted exactly; published figures rounded to a billion must agree to a percent.
func TestParameterCountsMatchTheCatalog(t *testing.T) {
	c := catalog()
	checked := 0
	for i, a := range c.Models() {
		r := c.rows[ModelTable][i]
		total, active := a.Params()
		compare := func(column string, got float64) {
			want := r.num(column)
			if want == 0 {
				return
			}
			tolerance := 0.0
			if !strings.HasPrefix(column, "derived") && strings.Contains(r[column], "e") {
				tolerance = 0.018 * want
			}
			if diff := got - want; diff > tolerance || -diff > tolerance {
				t.Errorf("%s: %s = %.0f, counted %.0f (off by %.0f)", a.Name, column, want, got, got-want)
			}
			checked++
		}
		compare("derived_total_params", total)
		compare("derived_active_params", active)
		compare("total_params", total)
		if want := r.num("derived_kv_bytes_per_token_2B"); want != 0 && a.KVBytesPerToken(KVAuto) != want {
			t.Errorf("%s: KV bytes per token %v, want %v", a.Name, a.KVBytesPerToken(KVAuto), want)
		}
	}
	if checked < 70 {
		t.Errorf("only %d counts compared", checked)
	}
}

func TestEveryCatalogRowIsUsable(t *testing.T) {
	c := catalog()
	for _, r := range c.rows[GPUTable] {
		if _, err := hardwareOf(r); err != nil {
			t.Error(err)
		}
	}
	for _, r := range c.rows[ModelTable] {
		if _, err := archOf(r); err != nil {
			t.Error(err)
		}
	}
	for _, a := range c.Models() {
		if err := a.Check(); err != nil {
			t.Error(err)
		}
		if a.Source == "" {
			t.Errorf("%s has no source", a.Name)
		}
	}
	for _, h := range c.GPUs() {
		if err := h.Check(); err != nil {
			t.Error(err)
		}
		if h.Source == "" {
			t.Errorf("%s has no source", h.Name)
		}
	}
}

// Every row says where and when its figures were read.
func TestSourcesAreDated(t *testing.T) {
	dated := regexp.MustCompile(`20\d\d-[01]\d`)
	for _, r := range catalog().rows[ModelTable] {
		if !dated.MatchString(r["source"]) {
			t.Errorf("%s: no date in %q", r["model"], r["source"])
		}
	}
}
