package config

import (
	"cmp"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	fileinput "planner/internal/input"
	"planner/internal/list"
	"planner/model"
	"planner/sweep/engine"
	"planner/sweep/measure"
)

// ServedModel is the model that is served.
type ServedModel struct {
	// Name is the catalog's name, or the name as written if the catalog does not have it.
	Name string
	// Exact says that a checkpoint was named, not a shape of the catalog.
	Exact bool
	// Config is the path of a Hugging Face config.json; "" if the catalog's shape is used.
	Config string
	// File is the path of the GGUF file that the engine loads; "" for engines that load a checkpoint.
	File string
	// Arch is the model's shape, valid only if Known. Precision is the format to serve it in; if none was asked
	// for, that of the checkpoint or else BF16 if Known, and unset otherwise.
	Arch      model.Arch
	Precision model.Precision
	// Stored is the format of the checkpoint, if known.
	Stored model.WeightFormat
	Known  bool
}

// weightFormats are the formats to choose from; "" alone means the model's own.
func weightFormats() codec[[]model.WeightFormat] {
	k := choice(named(model.Parse[model.WeightFormat], model.WeightFormat.String, append(model.Names[model.WeightFormat](), "")...))
	read := k.read
	k.read = func(n input) []model.WeightFormat {
		of := read(n)
		n.refuseIf(len(of) > 1 && slices.Contains(of, model.FormatUnset), `holds "", want each format of a list by its name`)
		return of
	}
	return k
}

// spreadFormats turns number formats into knobs if there are several to choose from.
func (c *Config) spreadFormats() {
	d, p := &c.draft, &c.Model.Precision
	p.Weights, p.KV = d.weights[0], d.kv[0]
	if len(d.weights) > 1 {
		d.space["weights"] = list.Map(d.weights, func(f model.WeightFormat) any { return f.String() })
	}
	if len(d.kv) > 1 {
		d.space["kv_cache"] = list.Map(d.kv, func(f model.KVFormat) any { return f.String() })
	}
}

// Precision returns the number formats of one of [Config.Candidates].
func (c *Config) Precision(k measure.Knobs) model.Precision {
	p := c.Model.Precision
	if f, err := model.Parse[model.WeightFormat](k.Weights); k.Weights != "" && err == nil {
		p.Weights = f
	}
	if f, err := model.Parse[model.KVFormat](k.KVCache); k.KVCache != "" && err == nil {
		p.KV = f
	}
	return p
}

func (r *reader) resolveModel(c *Config) {
	d, m := &c.draft, &c.Model
	m.Name, m.Exact, m.Stored = d.model, strings.Contains(d.model, "/"), model.NamedFormat(d.model)
	if !c.draft.need.Engine || !r.clean("model") {
		return
	}
	r.resolveModelFile(c)
	switch {
	case m.Config != "":
		m.Arch, m.Known = r.modelConfig(c)
	case d.model != "" && r.clean("model"):
		m.Arch, m.Known = r.modelNamed(c)
	case c.Simulated():
		r.absent("model.name", "is missing, want a catalog name or Hugging Face id (planner catalog models lists them), or a config.json in model.config")
	case c.draft.need.Limit:
		r.warn("model: none is given, so there is no roofline and no prior")
	}
	if !m.Known {
		return
	}
	m.Stored = m.Arch.Native
	if err := m.Arch.Check(); err != nil {
		if c.Simulated() {
			key := "model.name"
			if c.Model.Config != "" {
				key = "model.config"
			}
			r.at(key).refuse("%v; want a model whose shape is known, or its config.json in model.config", err)
		} else {
			r.warn("%v: there is no roofline and no prior", err)
		}
		m.Arch, m.Known = model.Arch{}, false
		return
	}
	m.Name = m.Arch.Name
	if w := &m.Precision.Weights; *w == model.FormatUnset {
		*w = cmp.Or(m.Arch.Native, model.BF16)
		if says := formatInName.FindString(d.model + " " + filepath.Base(filepath.Dir(m.Config)) + " " + filepath.Base(m.Config)); says != "" && (*w == model.BF16 || *w == model.FP16) {
			r.warn("model: its name says %s, and no configuration does: weights are taken as %s; give model.weights if they are not", says, *w)
		}
	}
	d.weights[0] = m.Precision.Weights
	v, err := model.ParseVersion(c.Engine.Version)
	since := m.Arch.Since()
	r.warnIf(c.Simulated() && err == nil && !v.AtLeast(0, since),
		"engine: version: vLLM %s does not serve %s, which came with 0.%d: its command will not start", c.Engine.Version, m.Name, since)
	if e := &c.Engine.Kernels.Experts; *e == model.ExpertsByDefault {
		*e = m.Arch.ExpertKernels()
	}
	if m.Arch.Attention.Compressed.Present() && d.kv[0] == model.KVAuto {
		// FlashMLA reads its cache in no other format, and auto means bf16, or a crash (vllm/models/deepseek_v4/attention.py,
		// 2026-07; pull requests 54233 and 55134).
		d.kv[0], m.Precision.KV = model.KVFP8, model.KVFP8
	}
}

// formatInName matches names of checkpoints and files that indicate quantized weights.
var formatInName = regexp.MustCompile(`(?i)(nvfp4|mxfp4|\b(mx)?fp8|\bawq|\bgptq|\bint[48]\b|\bw[48]a(8|16)|\bq[2-8]_[0-9k]\w*)`)

// ggufFile is the suffix of files that llama.cpp loads.
const ggufFile = ".gguf"

// resolveModelFile finds the file for an engine that loads only files.
func (r *reader) resolveModelFile(c *Config) {
	n, m := r.at("model.name"), &c.Model
	switch {
	case !engine.LoadsFile(c.Engine.Kind):
	case strings.HasSuffix(strings.ToLower(m.Name), ggufFile):
		m.File = n.absolute(m.Name)
		m.Name, c.draft.model = m.File, m.File
	case m.Name != "" && !c.Simulated():
		n.value = m.Name
		n.wrong("the path of a GGUF file, which is all that " + c.Engine.Kind + " loads; model.config may name the config.json of its shape")
	}
}

func (r *reader) modelConfig(c *Config) (model.Arch, bool) {
	n := r.at("model.config")
	arch := readFile(n, c.Model.Config, "a Hugging Face config.json", fileinput.ModelConfig, func(file io.Reader) (model.Arch, error) {
		beside, err := os.Open(filepath.Join(filepath.Dir(c.Model.Config), "hf_quant_config.json"))
		if err != nil {
			return model.ParseConfig(file)
		}
		defer beside.Close()
		return model.ParseQuantized(file, fileinput.Limit(beside, fileinput.ModelConfig))
	})
	arch.Name = cmp.Or(c.draft.model, arch.Name, filepath.Base(filepath.Dir(c.Model.Config)))
	return arch, r.clean(n.key)
}

// modelNamed looks the model up. A real engine can serve a Hugging Face id that is not in the catalog; then
// nothing can be computed for it.
func (r *reader) modelNamed(c *Config) (model.Arch, bool) {
	arch, err := r.catalog.Model(c.draft.model)
	switch {
	case err == nil:
		return arch, true
	case c.Model.File != "" && !c.Simulated():
		r.warn("model: a GGUF file does not tell its shape here: there is no roofline and no prior; model.config with the config.json of the model gives them")
	case c.Model.File != "":
		r.at("model.name").refuse("is a GGUF file, which does not tell its shape here; want the config.json of the model in model.config besides")
	case !c.Simulated() && c.Engine.Kind == "attach":
		r.warn("model: %v: there is no roofline and no prior; the name in requests is engine.served_name, if not the server's first", err)
	case !c.Simulated() && strings.Contains(c.draft.model, "/"):
		r.warn("model: %v: there is no roofline and no prior", err)
	default:
		r.at("model.name").refuse("%v; want a name from planner catalog models, or a config.json in model.config", err)
	}
	return model.Arch{}, false
}
