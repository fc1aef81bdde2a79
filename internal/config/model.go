package config

import (
	"cmp"
	"path/filepath"
	"slices"
	"strings"

	"planner/model"
)

// ServedModel is the model that is served.
type ServedModel struct {
	// Name is the catalog's name, or as it was written where the catalog does not
	// know it.
	Name string
	// Config is the path of a Hugging Face config.json, "" when the catalog's
	// shape is used.
	Config string
	// Arch is the model's shape, which means something only if Known, and Precision
	// what it is to be served in: the checkpoint's own format where none was asked
	// for, unset if that is not known either.
	Arch      model.Arch
	Precision model.Precision
	// Stored is the format of the checkpoint, as far as it is known.
	Stored model.WeightFormat
	Known  bool
}

// modelText is [model] as it was written.
type modelText struct {
	name, config, weights, kv string
}

// resolveModel finds the model's shape.
func (r *reader) resolveModel(c *Config) ServedModel {
	d := &c.draft
	m := ServedModel{Name: d.model.name, Config: d.model.config, Precision: givenPrecision(d.model), Stored: model.NamedFormat(d.model.name)}
	if c.need.Engine == NoEngine || !r.clean("model") {
		return m
	}
	switch {
	case d.model.config != "":
		m.Arch, m.Known = r.modelConfig(d)
	case d.model.name != "":
		m.Arch, m.Known = r.modelNamed(c)
	case c.Simulated():
		r.absent("model.name", "is missing, want a catalog name or Hugging Face id (planner catalog models lists them), or a config.json in model.config")
	case c.need.Limit:
		r.warn("model: none is given, so there is no roofline and no prior")
	}
	if !m.Known {
		return m
	}
	m.Stored = m.Arch.Native
	if err := m.Arch.Check(); err != nil {
		if c.Simulated() {
			r.at(modelKey(d)).refuse("%v; want a model whose shape is known, or its config.json in model.config", err)
		} else {
			r.warn("%v: there is no roofline and no prior", err)
		}
		m.Arch, m.Known = model.Arch{}, false
		return m
	}
	m.Name = m.Arch.Name
	m.Precision = precisionOf(d.model, m.Arch)
	d.model.weights = m.Precision.Weights.String()
	return m
}

// modelKey is the key that names the model.
func modelKey(d *draft) string {
	if d.model.config != "" {
		return "model.config"
	}
	return "model.name"
}

func (r *reader) modelConfig(d *draft) (model.Arch, bool) {
	n := r.at("model.config")
	f, ok := n.open(d.model.config, "a Hugging Face config.json")
	if !ok {
		return model.Arch{}, false
	}
	defer f.Close()
	arch, err := model.ParseConfig(f)
	if err != nil {
		n.refuse("%s: %v", d.model.config, err)
		return model.Arch{}, false
	}
	arch.Name = cmp.Or(d.model.name, arch.Name, filepath.Base(filepath.Dir(d.model.config)))
	return arch, true
}

// modelNamed looks the model up. A real engine can serve a Hugging Face id that the
// catalog does not know; nothing can be computed for it then.
func (r *reader) modelNamed(c *Config) (model.Arch, bool) {
	arch, err := r.catalog.Model(c.draft.model.name)
	switch {
	case err == nil:
		return arch, true
	case !c.Simulated() && strings.Contains(c.draft.model.name, "/"):
		r.warn("model: %v: there is no roofline and no prior", err)
	default:
		r.at("model.name").refuse("%v; want a name from planner catalog models, or a config.json in model.config", err)
	}
	return model.Arch{}, false
}

// precisionOf reads the formats, the checkpoint's own where none is given.
func precisionOf(text modelText, arch model.Arch) model.Precision {
	p := givenPrecision(text)
	if p.Weights == model.FormatUnset {
		p.Weights = arch.Native
	}
	if p.Weights == model.FormatUnset {
		p.Weights = model.BF16
	}
	return p
}

// givenPrecision reads the formats that were given.
func givenPrecision(text modelText) model.Precision {
	var p model.Precision
	if slices.Contains(weightFormats, text.weights) {
		p.Weights, _ = model.ParseWeightFormat(text.weights)
	}
	p.KV, _ = model.ParseKVFormat(text.kv)
	return p
}
