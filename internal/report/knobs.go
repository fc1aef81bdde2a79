package report

import (
	"slices"
	"strconv"
	"strings"

	"planner/sweep/measure"
)

// knob is one setting: its name in configurations, its short name in tables, the
// option of vLLM's command line and its value, empty if the engine's default
// holds.
type knob struct{ name, short, option, value string }

// knobs lists the settings in a fixed order. The options are those of vLLM 0.20.
func knobs(k measure.Knobs) []knob {
	number := func(n int) string {
		if n == 0 {
			return ""
		}
		return strconv.Itoa(n)
	}
	share := ""
	if k.GPUMemoryUtilization > 0 {
		share = strconv.FormatFloat(k.GPUMemoryUtilization, 'f', -1, 64)
		if len(share) == 3 { // 0.9 beside 0.85
			share += "0"
		}
	}
	prefix, experts := "off", ""
	switch {
	case k.PrefixUnknown:
		prefix = ""
	case k.PrefixCaching:
		prefix = "on"
	}
	if k.ExpertParallel {
		experts = "on"
	}
	return []knob{
		{"gpu", "GPU", "", k.GPU},
		{"tensor_parallel", "TP", "--tensor-parallel-size", number(k.TensorParallel)},
		{"pipeline_parallel", "PP", "--pipeline-parallel-size", number(k.PipelineParallel)},
		{"data_parallel", "DP", "--data-parallel-size", number(k.DataParallel)},
		{"expert_parallel", "EP", "--enable-expert-parallel", experts},
		{"max_num_seqs", "seqs", "--max-num-seqs", number(k.MaxNumSeqs)},
		{"max_num_batched_tokens", "tokens", "--max-num-batched-tokens", number(k.MaxNumBatchedTokens)},
		{"gpu_memory_utilization", "memory", "--gpu-memory-utilization", share},
		{"prefix_caching", "prefix cache", "--enable-prefix-caching", prefix},
		{"max_model_len", "length", "--max-model-len", number(k.MaxModelLen)},
		{"kv_blocks", "blocks", "--num-gpu-blocks-override", number(k.KVBlocks)},
	}
}

// ServerCommand is the command line of vLLM with these settings, for a model by
// its Hugging Face id or path (MODEL where that is not known), and further
// options. What is left to the engine's default has no option.
func ServerCommand(k measure.Knobs, model string, further ...string) string {
	if model == "" {
		model = "MODEL"
	}
	parts := []string{"vllm serve " + model}
	for _, n := range knobs(k) {
		switch {
		case n.option == "" || n.value == "":
		case n.value == "on":
			parts = append(parts, n.option)
		case n.value == "off":
			parts = append(parts, strings.Replace(n.option, "--enable", "--no-enable", 1))
		case n.value == "1" && strings.HasSuffix(n.name, "_parallel"):
		default:
			parts = append(parts, n.option+" "+n.value)
		}
	}
	return strings.Join(append(parts, further...), " ")
}

// Server says how one instance is started.
type Server struct {
	// Command is its command line, see [ServerCommand]. File is the path of a file
	// that it reads its options from and Content what stands there; "" for none.
	Command, File, Content string
	// Notes say what the command line cannot.
	Notes []string
}

// addServer shows how an instance is started, by its knobs where that is all that
// is known.
func addServer(d *Document, title string, s Server, k measure.Knobs) {
	// Of results of others the GPU may be all that is known: that makes no command.
	known := k
	known.GPU, known.PrefixUnknown = "", false
	if s.Command == "" && known != (measure.Knobs{}) {
		s.Command = ServerCommand(k, "")
	}
	if s.Command == "" {
		return
	}
	d.section(title, Code{s.Command})
	if s.File != "" {
		d.add(Paragraph{Text: s.File + ":", Tone: Quiet}, Code{s.Content})
	}
	if len(s.Notes) > 0 {
		d.add(List{Items: s.Notes, Tone: Doubt})
	}
}

// differing says which settings are not the same in all sets, by their place in
// knobs.
func differing(sets []measure.Knobs) []bool {
	var out []bool
	var first []knob
	for i, k := range sets {
		all := knobs(k)
		if i == 0 {
			first, out = all, make([]bool, len(all))
		}
		for j := range all {
			out[j] = out[j] || all[j].value != first[j].value
		}
	}
	return out
}

// describe names the chosen settings of a set: "TP 4, seqs 256". A setting left
// to the engine reads "default".
func describe(k measure.Knobs, which []bool) string {
	var parts []string
	for i, n := range knobs(k) {
		if i >= len(which) || !which[i] {
			continue
		}
		value := n.value
		if value == "" {
			value = "default"
		}
		if n.name == "gpu" {
			parts = append(parts, value)
			continue
		}
		parts = append(parts, n.short+" "+value)
	}
	if len(parts) == 0 {
		return "the same"
	}
	return strings.Join(parts, ", ")
}

// given marks the settings that are not left to the engine.
func given(k measure.Knobs) []bool {
	var out []bool
	for _, n := range knobs(k) {
		one := n.value == "1" && strings.HasSuffix(n.name, "_parallel") && n.name != "tensor_parallel"
		out = append(out, n.value != "" && !one)
	}
	return out
}

// sets lists the distinct settings of trials in the order of their first trial,
// without those that cannot run.
func sets(trials []measure.Measurement) []measure.Knobs {
	var out []measure.Knobs
	for i := range trials {
		if trials[i].Rejected == "" && !slices.Contains(out, trials[i].Trial.Knobs) {
			out = append(out, trials[i].Trial.Knobs)
		}
	}
	return out
}

// of are the trials of one set of knobs.
func of(trials []measure.Measurement, k measure.Knobs) []measure.Measurement {
	return slices.DeleteFunc(slices.Clone(trials), func(m measure.Measurement) bool { return m.Trial.Knobs != k })
}
