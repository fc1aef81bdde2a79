package model

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"planner/internal/evidence/must"
)

// Every published config.json gives the shape that the catalog has of the model.
func TestParseConfigAgreesWithTheCatalog(t *testing.T) {
	names, err := filepath.Glob("testdata/configs/*.json")
	if err != nil || len(names) < 12 {
		t.Fatalf("%d fixtures, %v", len(names), err)
	}
	c := catalog()
	for _, path := range names {
		f := must.Get(os.Open(path))
		got, err := ParseConfig(f)
		f.Close()
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		want := must.Get(c.Model(strings.TrimSuffix(filepath.Base(path), ".json")))
		if shape(got) != shape(want) {
			t.Errorf("%s:\n got %s\nwant %s", path, shape(got), shape(want))
		}
		if got.Native != want.Native && !(got.Native == FormatUnset && want.Native == BF16 || got.Native == BF16 && want.Native == FormatUnset) {
			t.Errorf("%s: weights %q, want %q", path, got.Native, want.Native)
		}
	}
}

// shape is everything that costs are computed from.
func shape(a Arch) string {
	if a.denseLayers() == 0 {
		a.Intermediate = 0
	}
	at := a.Attention
	if at.MLA.Present() {
		at.HeadDim = 0
	}
	a.Details.BlockFP8 = false
	return fmt.Sprintf("%d %d %d %d %d %v %+v %+v %+v", a.Layers, a.Hidden, a.Intermediate, a.Vocab, a.MaxPosition, a.Tied, at, a.MoE, a.Details)
}

const llama = `{"architectures":["LlamaForCausalLM"],"num_hidden_layers":2,"hidden_size":64,"intermediate_size":128,
"num_attention_heads":4,"num_key_value_heads":2,"vocab_size":100,"max_position_embeddings":512%s}`

func TestParseConfigFormats(t *testing.T) {
	for quantisation, want := range map[string]WeightFormat{
		``:                         FormatUnset,
		`,"torch_dtype":"float16"`: FP16, `,"dtype":"bfloat16"`: BF16, `,"torch_dtype":"float32"`: FormatUnset,
		`,"quantization_config":{"quant_method":"fp8","weight_block_size":[128,128]}`: FP8,
		`,"quantization_config":{"quant_method":"awq","bits":4}`:                      INT4,
		`,"quantization_config":{"quant_method":"gptq","bits":8}`:                     INT8,
		`,"quantization_config":{"quant_method":"mxfp4"}`:                             MXFP4,
		`,"quantization_config":{"quant_method":"compressed-tensors","format":"float-quantized","config_groups":{"group_0":{"weights":{"num_bits":8,"type":"float"}}}}`: FP8,
		`,"quantization_config":{"quant_method":"compressed-tensors","config_groups":{"group_0":{"weights":{"num_bits":4,"type":"int"}}}}`:                              INT4,
		`,"quantization_config":{"quant_method":"compressed-tensors","format":"nvfp4-pack-quantized"}`:                                                                  NVFP4,
		`,"quantization_config":{"quant_method":"modelopt","quant_algo":"NVFP4"}`:                                                                                       NVFP4,
		`,"quantization_config":{"quant_method":"modelopt","quant_algo":"FP8"}`:                                                                                         FP8,
		`,"quantization_config":{"quant_method":"modelopt","quant_algo":"FP8_PB_WO"}`:                                                                                   FP8,
		`,"quantization_config":{"quant_method":"compressed-tensors","config_groups":{"group_0":{"weights":{"num_bits":8,"type":"float","strategy":"block"}}}}`:         FP8,
		`,"quantization_config":{"quant_method":"quark","global_quant_config":{"weight":{"dtype":"fp4","group_size":32}}}`:                                              MXFP4,
		`,"quantization_config":{"quant_method":"quark","global_quant_config":{"weight":[{"dtype":"fp8_e4m3"},{"dtype":"int4"}]}}`:                                      INT4,
	} {
		a, err := ParseConfig(strings.NewReader(fmt.Sprintf(llama, quantisation)))
		if err != nil || a.Native != want {
			t.Errorf("%s: %q, %v, want %q", quantisation, a.Native, err, want)
		}
		if block := strings.Contains(quantisation, "block") || strings.Contains(quantisation, "PB"); a.Details.BlockFP8 != block {
			t.Errorf("%s: blocks %v", quantisation, a.Details.BlockFP8)
		}
	}
}

// A cache that is configured as auto has the format that the checkpoint was calibrated for,
// on releases that read it and where the checkpoint itself is served.
func TestKVFormatOfCheckpoints(t *testing.T) {
	static := `{"quantization_config":{"quant_method":"%s","quant_algo":"FP8","config_groups":{"group_0":{"weights":{"num_bits":8,"type":"float"}}},"kv_cache_scheme":%s}}`
	for _, c := range []struct {
		config, beside, version string
		weights                 WeightFormat
		want                    KVFormat
	}{
		{config: fmt.Sprintf(static, "modelopt", `{"dynamic":false,"num_bits":8,"type":"float"}`), want: KVFP8},
		{config: fmt.Sprintf(static, "compressed-tensors", `{"num_bits":8,"type":"float","strategy":"tensor"}`), want: KVFP8},
		{config: fmt.Sprintf(static, "compressed-tensors", `null`)},
		{config: `{}`, beside: `{"quantization":{"quant_algo":"FP8","kv_cache_quant_algo":"FP8"}}`, want: KVFP8},
		{config: `{}`, beside: `{"quantization":{"quant_algo":"FP8","kv_cache_quant_algo":"FP8"}}`, version: "0.13.0", want: KVFP8},
		{config: `{}`, beside: `{"quantization":{"quant_algo":"FP8","kv_cache_quant_algo":"FP8"}}`, version: "0.12.0"},
		{config: `{}`, beside: `{"quantization":{"quant_algo":"FP8","kv_cache_quant_algo":"FP8"}}`, weights: BF16},
		{config: `{}`, beside: `{"quantization":{"quant_algo":"FP8","kv_cache_quant_algo":null}}`},
	} {
		var beside io.Reader
		if c.beside != "" {
			beside = strings.NewReader(c.beside)
		}
		own := strings.TrimSuffix(strings.TrimPrefix(c.config, "{"), "}")
		if own != "" {
			own = "," + own
		}
		a := must.Get(ParseQuantized(strings.NewReader(fmt.Sprintf(llama, own)), beside))
		d := Deployment{Arch: a, Precision: Precision{Weights: c.weights}}
		if got := d.Serving(EngineArgs{EngineVersion: c.version}).Precision.KV; got != c.want {
			t.Errorf("%s %s on %q in %q: the cache is %q, want %q", c.config, c.beside, c.version, c.weights, got, c.want)
		}
	}
	// Of a name alone only what the published file says is known.
	for name, want := range map[string]KVFormat{"nvidia/Llama-3.1-70B-Instruct-FP8": KVFP8, "nvidia/Qwen3.6-35B-A3B-NVFP4": KVAuto, "nvidia/Qwen3-14B-NVFP4": KVAuto} {
		if a, err := catalog().Model(name); err != nil || a.NativeKV != want {
			t.Errorf("%s: cache %v, %v, want %v", name, a.NativeKV, err, want)
		}
	}
	a, err := catalog().Model("nvidia/Gemma-4-31B-IT-NVFP4")
	if err != nil || a.Native != NVFP4 || a.Details.AttentionFormats != (Mix{BF16: 1}) {
		t.Errorf("%v, attention %v, %v", a.Native, a.Details.AttentionFormats, err)
	}
}

func TestParseConfigErrors(t *testing.T) {
	for text, want := range map[string]string{
		``:   "unexpected end",
		`[]`: "cannot unmarshal",
		`{}`: `key "num_hidden_layers" is missing`,
		`{"num_hidden_layers":2,"hidden_size":64,"num_attention_heads":4,"vocab_size":10}`:                       `key "intermediate_size" is missing`,
		`{"num_hidden_layers":2,"hidden_size":64,"num_attention_heads":4,"intermediate_size":1}`:                 `key "vocab_size" is missing`,
		strings.Replace(fmt.Sprintf(llama, ""), `"hidden_size":64`, `"hidden_size":"64"`, 1):                     "hidden_size: want a number",
		strings.Replace(fmt.Sprintf(llama, ""), `"num_hidden_layers":2`, `"num_hidden_layers":-2`, 1):            "no count that a model can have",
		strings.Replace(fmt.Sprintf(llama, ""), `"num_key_value_heads":2`, `"num_key_value_heads":3`, 1):         "not a multiple of 3 KV heads",
		strings.Replace(fmt.Sprintf(llama, `,"expert_count":8,"experts_used":2`), "LlamaFor", "FoobarMoEFor", 1): `expert_count: experts under a key that is not known, of the class FoobarMoEFor`,
		fmt.Sprintf(llama, `,"num_local_experts":8`):                                                             `key "num_experts_per_tok" is missing`,
		fmt.Sprintf(llama, `,"linear_num_value_heads":32`):                                                       "architecture not modelled",
		fmt.Sprintf(llama, `,"layer_types":["mamba","full_attention"]`):                                          "architecture not modelled",
		fmt.Sprintf(llama, `,"is_encoder_decoder":true`):                                                         "encoder-decoder",
		fmt.Sprintf(llama, `,"cross_attention_layers":[3]`):                                                      "attention to images",
		fmt.Sprintf(llama, `,"attn_type_list":[0,1]`):                                                            "linear attention",
		fmt.Sprintf(llama, `,"conv_L_cache":3`):                                                                  "architecture not modelled",
		fmt.Sprintf(llama, `,"use_cla":true`):                                                                    "keys and values of others",
		fmt.Sprintf(llama, `,"type_vocab_size":2`):                                                               "encoders",
		fmt.Sprintf(llama, `,"num_local_experts":4,"num_experts_per_tok":[1,2]`):                                 "one figure for each layer",
		fmt.Sprintf(llama, `,"quantization_config":{"quant_method":"fancy"}`):                                    `"fancy" is not known`,
		fmt.Sprintf(llama, `,"kv_lora_rank":512`):                                                                `key "qk_rope_head_dim" is missing`,
		strings.Replace(fmt.Sprintf(llama, ""), `"num_hidden_layers":2`, `"num_hidden_layers":1e300`, 1):         "no count",
		fmt.Sprintf(llama, `,"sliding_window":4,"swa_num_key_value_heads":0`):                                    "KV heads of window layers",
		fmt.Sprintf(llama, `,"num_local_experts":8,"num_experts_per_tok":9`):                                     "9 active experts out of 8",
	} {
		_, err := ParseConfig(strings.NewReader(text))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60s: error %v, want %q", text, err, want)
		}
	}
	_, err := ParseConfig(strings.NewReader(`{}`))
	if !errors.Is(err, ErrNoFigure) {
		t.Errorf("%v does not wrap ErrNoFigure", err)
	}
}

func TestParseConfigFamilies(t *testing.T) {
	cases := []struct {
		text                       string
		kvHeads, intermediate, moe int
		window, windowLayers       int
		total, within              float64
	}{
		// Falcon-7B: one KV head, MLP four times as wide, 6,921,720,704 parameters.
		{`{"architectures":["FalconForCausalLM"],"hidden_size":4544,"num_attention_heads":71,"num_hidden_layers":32,"vocab_size":65024,"multi_query":true,"parallel_attn":true,"bias":false,"new_decoder_architecture":false}`, 1, 18176, 0, 0, 0, 6921720704, 0},
		// Phi-2: 2,779,683,840 parameters.
		{`{"architectures":["PhiForCausalLM"],"hidden_size":2560,"intermediate_size":10240,"num_attention_heads":32,"num_hidden_layers":32,"vocab_size":51200,"max_position_embeddings":2048,"tie_word_embeddings":false}`, 32, 10240, 0, 0, 0, 2779683840, 0},
		// Qwen1.5-MoE-A2.7B: 14,315,784,192 parameters.
		{`{"architectures":["Qwen2MoeForCausalLM"],"hidden_size":2048,"intermediate_size":5632,"moe_intermediate_size":1408,"shared_expert_intermediate_size":5632,"num_attention_heads":16,"num_experts":60,"num_experts_per_tok":4,"num_hidden_layers":24,"num_key_value_heads":16,"vocab_size":151936,"decoder_sparse_step":1,"tie_word_embeddings":false,"max_position_embeddings":8192,"sliding_window":32768,"use_sliding_window":false}`, 16, 5632, 24, 0, 0, 14315784192, 0},
		// Llama 4 Maverick: every second layer has experts.
		{`{"architectures":["Llama4ForConditionalGeneration"],"text_config":{"hidden_size":5120,"intermediate_size":8192,"intermediate_size_mlp":16384,"interleave_moe_layer_step":2,"num_attention_heads":40,"num_experts_per_tok":1,"num_hidden_layers":48,"num_key_value_heads":8,"num_local_experts":128,"vocab_size":202048,"max_position_embeddings":1048576}}`, 8, 16384, 24, 8192, 36, 0, 0},
		// Apertus-70B, Nemotron-4-15B: no gate beside the MLP, by the name of its activation.
		{`{"architectures":["ApertusForCausalLM"],"hidden_size":8192,"num_hidden_layers":80,"num_attention_heads":64,"num_key_value_heads":8,"intermediate_size":43008,"vocab_size":131072,"hidden_act":"xielu"}`, 8, 43008, 0, 0, 0, 70.6e9, 0.005},
		{`{"architectures":["NemotronForCausalLM"],"hidden_size":6144,"num_hidden_layers":32,"num_attention_heads":48,"num_key_value_heads":8,"intermediate_size":24576,"vocab_size":256000,"hidden_act":"relu2"}`, 8, 24576, 0, 0, 0, 15.6e9, 0.005},
		// EXAONE-3.5-32B, Jais-13B and StarCoder (15.5 billion): activation_function says whether there is a gate.
		{`{"architectures":["ExaoneForCausalLM"],"hidden_size":5120,"num_layers":64,"num_attention_heads":40,"num_key_value_heads":8,"intermediate_size":27392,"vocab_size":102400,"tie_word_embeddings":false,"activation_function":"silu"}`, 8, 27392, 0, 0, 0, 32.0e9, 0.001},
		{`{"architectures":["JAISLMHeadModel"],"n_embd":5120,"n_layer":40,"n_head":40,"n_inner":13653,"n_positions":2048,"vocab_size":84992,"activation_function":"swiglu"}`, 40, 13653, 0, 0, 0, 13.02e9, 0.001},
		{`{"architectures":["GPTBigCodeForCausalLM"],"n_embd":6144,"n_layer":40,"n_head":48,"n_inner":24576,"multi_query":true,"vocab_size":49152,"tie_word_embeddings":true,"activation_function":"gelu"}`, 1, 24576, 0, 0, 0, 15.5e9, 0.005},
		// OPT-1.3B (without its 4.2 million positions) and BLOOM: embeddings are tied though the file does not say so.
		{`{"architectures":["OPTForCausalLM"],"hidden_size":2048,"num_hidden_layers":24,"num_attention_heads":32,"ffn_dim":8192,"vocab_size":50272,"activation_function":"relu"}`, 32, 8192, 0, 0, 0, 1.3116e9, 0.001},
		{`{"architectures":["BloomForCausalLM"],"hidden_size":14336,"n_layer":70,"num_attention_heads":112,"vocab_size":250880}`, 112, 57344, 0, 0, 0, 176.25e9, 0.001},
		// Qwen-7B (7.72 billion) and the text of Molmo-7B-D, which is Qwen2-7B: the file counts gate and up projection together.
		{`{"architectures":["QWenLMHeadModel"],"hidden_size":4096,"num_hidden_layers":32,"num_attention_heads":32,"intermediate_size":22016,"vocab_size":151936}`, 32, 11008, 0, 0, 0, 7.72e9, 0.001},
		{`{"architectures":["MolmoForCausalLM"],"hidden_size":3584,"num_hidden_layers":28,"num_attention_heads":28,"num_key_value_heads":4,"intermediate_size":37888,"vocab_size":152064}`, 4, 18944, 0, 0, 0, 7.62e9, 0.001},
		// Ernie-4.5-300B-A47B: experts from the fourth layer on.
		{`{"architectures":["Ernie4_5_MoeForCausalLM"],"hidden_size":8192,"num_hidden_layers":54,"num_attention_heads":64,"num_key_value_heads":8,"intermediate_size":28672,"moe_intermediate_size":3584,"moe_num_experts":64,"moe_k":8,"moe_layer_start_index":3,"moe_layer_interval":1,"vocab_size":103424}`, 8, 28672, 51, 0, 0, 300e9, 0.005},
		// Hunyuan-A13B: figures for each layer that are all one.
		{`{"architectures":["HunYuanMoEV1ForCausalLM"],"hidden_size":4096,"num_hidden_layers":32,"num_attention_heads":32,"num_key_value_heads":8,"attention_head_dim":128,"intermediate_size":3072,"moe_intermediate_size":[3072,3072],"num_experts":64,"num_shared_expert":[1,1],"moe_topk":[8,8],"use_cla":false,"vocab_size":128167,"tie_word_embeddings":true}`, 8, 3072, 32, 0, 0, 80.4e9, 0.005},
		// Grok 2: an MLP beside the experts.
		{`{"architectures":["Grok1ForCausalLM"],"hidden_size":8192,"num_hidden_layers":64,"num_attention_heads":64,"num_key_value_heads":8,"intermediate_size":32768,"moe_intermediate_size":16384,"num_local_experts":8,"num_experts_per_tok":2,"residual_moe":true,"vocab_size":131072}`, 8, 32768, 64, 0, 0, 270e9, 0.005},
		// EXAONE-4.0-32B: three layers in four have a window.
		{`{"architectures":["Exaone4ForCausalLM"],"hidden_size":5120,"num_hidden_layers":64,"num_attention_heads":40,"num_key_value_heads":8,"head_dim":128,"intermediate_size":27392,"vocab_size":102400,"max_position_embeddings":131072,"sliding_window":4096,"sliding_window_pattern":"LLLG"}`, 8, 27392, 0, 4096, 48, 32.0e9, 0.005},
		// Step-3.5-Flash: more heads in layers with a window, and a list that goes on with three layers that propose tokens.
		{`{"architectures":["Step3p7ForConditionalGeneration"],"text_config":{"architectures":["Step3p5ForCausalLM"],"hidden_size":4096,"num_hidden_layers":45,"num_attention_heads":64,"num_attention_groups":8,"head_dim":128,"attention_other_setting":{"num_attention_heads":96,"num_attention_groups":8,"head_dim":128},"layer_types":[` +
			strings.Repeat(`"full_attention","sliding_attention","sliding_attention","sliding_attention",`, 11) + `"full_attention","sliding_attention","sliding_attention","sliding_attention"],"sliding_window":512,"intermediate_size":11264,"vocab_size":128896,"moe_layers_enum":"3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31,32,33,34,35,36,37,38,39,40,41,42,43,44","moe_num_experts":288,"moe_top_k":8,"moe_intermediate_size":1280,"share_expert_dim":1280}}`, 8, 11264, 42, 512, 33, 196.81e9, 0.001},
		// Qwen3-Omni-30B-A3B: the text tower of its thinker.
		{`{"architectures":["Qwen3OmniMoeForConditionalGeneration"],"thinker_config":{"text_config":{"hidden_size":2048,"num_hidden_layers":48,"num_attention_heads":32,"num_key_value_heads":4,"head_dim":128,"moe_intermediate_size":768,"num_experts":128,"num_experts_per_tok":8,"vocab_size":152064}}}`, 4, 0, 48, 0, 0, 30.5e9, 0.005},
	}
	for _, c := range cases {
		a, err := ParseConfig(strings.NewReader(c.text))
		if err != nil {
			t.Errorf("%.50s: %v", c.text, err)
			continue
		}
		total, _ := a.Params()
		if a.Attention.KVHeads != c.kvHeads || a.Intermediate != c.intermediate || a.MoE.Layers != c.moe ||
			a.Attention.Window != c.window || a.Attention.WindowLayers != c.windowLayers || c.total > 0 && math.Abs(total-c.total) > c.within*c.total {
			t.Errorf("%s: %+v, %.0f parameters, want %.0f", a.Family, a, total, c.total)
		}
	}
}

// Stretched positions are as many times those that the model was trained on (Qwen3-8B as its card says for long texts,
// DeepSeek-V3, Phi-3.5), but where max_position_embeddings has them.
func TestStretchedPositions(t *testing.T) {
	for rope, want := range map[string]int{
		`{}`: 40960,
		`{"rope_scaling":{"rope_type":"yarn","factor":4.0,"original_max_position_embeddings":32768}}`:    131072,
		`{"rope_parameters":{"rope_type":"yarn","factor":4.0,"original_max_position_embeddings":32768}}`: 131072,
		`{"rope_scaling":{"type":"yarn","factor":40,"original_max_position_embeddings":4096}}`:           163840,
		`{"rope_scaling":{"type":"yarn","factor":2}}`:                                                    81920,
		`{"rope_scaling":{"type":"linear","factor":4}}`:                                                  163840,
		`{"rope_scaling":{"rope_type":"llama3","factor":8,"original_max_position_embeddings":8192}}`:     40960,
		`{"rope_scaling":{"type":"longrope","factor":32,"original_max_position_embeddings":4096}}`:       40960,
		`{"rope_scaling":{"type":"mrope","mrope_section":[16,24,24]}}`:                                   40960,
		`{"rope_scaling":null}`: 40960,
		`{"architectures":["Gemma3ForCausalLM"],"rope_scaling":{"rope_type":"linear","factor":8}}`: 40960,
	} {
		own := strings.TrimSuffix(strings.TrimPrefix(rope, "{"), "}")
		if own != "" {
			own = "," + own
		}
		text := strings.Replace(fmt.Sprintf(llama, own), `"max_position_embeddings":512`, `"max_position_embeddings":40960`, 1)
		if a, err := ParseConfig(strings.NewReader(text)); err != nil || a.MaxPosition != want {
			t.Errorf("%s: %d tokens, %v, want %d", rope, a.MaxPosition, err, want)
		}
	}
	if _, err := ParseConfig(strings.NewReader(fmt.Sprintf(llama, `,"rope_scaling":{"type":"yarn","factor":1e300}`))); err == nil || !strings.Contains(err.Error(), "no context") {
		t.Errorf("a factor of 1e300: %v", err)
	}
}

// Whatever the file says, the reader neither panics nor returns a shape that the rest
// cannot compute with.
func FuzzParseConfig(f *testing.F) {
	names, _ := filepath.Glob("*/configs/*.json")
	for _, path := range names {
		f.Add(must.Get(os.ReadFile(path)))
	}
	f.Add([]byte(fmt.Sprintf(llama, `,"sliding_window":10,"moe_layers":[1,2,3]`)))
	c := must.Get(NewCatalog())
	hw := must.Get(c.GPU("B200 SXM"))
	f.Fuzz(func(t *testing.T, data []byte) {
		a, err := ParseConfig(bytes.NewReader(data))
		if err != nil {
			return
		}
		if err := a.Check(); err != nil {
			t.Fatal(err)
		}
		d := Deployment{Arch: a, Hardware: hw}
		r, err := NewRoofline(d, ConstantsFor(hw, EngineArgs{}), EngineArgs{})
		if err != nil {
			t.Fatal(err)
		}
		if s := r.Step(Batch{Decodes: 3, Context: 300, Longest: 100, Windowed: 3, Sampled: 3}); !(s.Total > 0) {
			t.Fatalf("a step takes %v", s.Total)
		}
		MemoryPlan(d, EngineArgs{MaxModelLen: 100})
	})
}

// Layers with a window may have heads of their own: the published totals and active
// parameters of Gemma 4 and MiMo-V2-Flash, and what a token takes of the cache in layers
// without a window (2 x 4 heads of 512; 4 heads of 192 + 128) and with one.
func TestLayersOfTwoShapes(t *testing.T) {
	for _, c := range []struct {
		model         string
		total, active float64
		full, window  float64
	}{
		{"Gemma-4-31B", 30.7e9, 30.7e9, 2 * 4 * 512 * 2, 2 * 16 * 256 * 2},
		{"Gemma-4-26B-A4B", 25.2e9, 3.8e9, 2 * 2 * 512 * 2, 2 * 8 * 256 * 2},
		{"MiMo-V2-Flash", 309e9, 15.4e9, 4 * 320 * 2, 8 * 320 * 2},
	} {
		d := deploy(t, c.model, "B200 SXM", 1).Normal()
		total, active := d.Arch.Params()
		if math.Abs(total/c.total-1) > 0.005 || math.Abs(active/c.active-1) > 0.01 {
			t.Errorf("%s: %.2f billion parameters, %.2f active", c.model, total/1e9, active/1e9)
		}
		at := d.Arch.Attention
		if full, window := at.bytes(KVAuto, 1), at.windowed().bytes(KVAuto, 1); full != c.full || window != c.window {
			t.Errorf("%s: %v and %v bytes a token and layer, want %v and %v", c.model, full, window, c.full, c.window)
		}
		// A token far beyond the window takes memory in layers without one alone.
		l := layoutOf(d, EngineArgs{})
		grown := float64(l.Blocks(20_000, 16)-l.Blocks(10_400, 16)) * l.blockBytes(d) / 9600
		if want := float64(d.Arch.fullLayers()) * c.full; math.Abs(grown/want-1) > 0.15 {
			t.Errorf("%s: a token takes %.0f bytes, want %.0f", c.model, grown, want)
		}
	}
}

// ModelOpt writes formats beside the config.json, for each module where they are mixed.
func TestParseQuantized(t *testing.T) {
	plain := fmt.Sprintf(llama, "")
	for beside, want := range map[string]struct {
		weights        WeightFormat
		attention, mlp Mix
	}{
		`{"quantization":{"quant_algo":"FP8","exclude_modules":["lm_head"]}}`: {weights: FP8},
		// Of 12,288 parameters of a layer's attention queries have 4,096.
		`{"quantization":{"quant_algo":"NVFP4","exclude_modules":["model.layers.0.self_attn.q_proj","model.layers.1.self_attn.q_proj"]}}`: {NVFP4, Mix{2. / 3, BF16: 1. / 3}, Mix{}},
		// What mixed precision does not list is not quantised.
		`{"quantization":{"quant_algo":"MIXED_PRECISION","quantized_layers":{"model.layers.0.self_attn.q_proj":{"quant_algo":"FP8"},
		"model.layers.0.mlp.up_proj":{"quant_algo":"W4A16_NVFP4"}}}}`: {NVFP4, Mix{BF16: 5. / 6, FP8: 1. / 6}, Mix{1. / 6, BF16: 5. / 6}},
		`{"quantization":{"quant_algo":"MIXED_PRECISION","quantized_layers":{"mlp":{"quant_algo":"NVFP4"}}}}`:                                          {NVFP4, Mix{BF16: 1}, Mix{}},
		`{"quantization":{"quant_algo":"MIXED_PRECISION","quantized_layers":{"mlp":{"quant_algo":"NVFP4"},"layers.0.mlp":{"quant_algo":"FP8"}}}}`:      {FP8, Mix{BF16: 1}, Mix{.5, NVFP4: .5}},
		`{"quantization":{"quant_algo":"MIXED_PRECISION","quantized_layers":{"mlp.down_proj":{"quant_algo":"FP8"},"self_attn":{"quant_algo":"FP8"}}}}`: {FP8, Mix{}, Mix{1. / 3, BF16: 2. / 3}},
		// Small parts of a gated delta network, and a vision tower, say nothing of attention (Qwen3-Next-80B-A3B-Instruct-FP8).
		`{"quantization":{"quant_algo":"FP8","exclude_modules":["model.layers.0.linear_attn.A_log","model.layers.1.linear_attn.conv1d",
		"model.layers.2.linear_attn.in_proj_ba","model.layers.3.linear_attn.in_proj_a","*.self_attn.indexer.*","re:.*linear_attn.in_proj_b$",
		"model.visual.layers.0.self_attn.q_proj","model.layers.0.mlp.gate","*.gate","model.visual.layers.2.attn.qkv"]}}`: {weights: FP8},
		`{}`: {},
	} {
		a, err := ParseQuantized(strings.NewReader(plain), strings.NewReader(beside))
		if err != nil || a.Native != want.weights || !alike(a.Details.AttentionFormats, want.attention) || !alike(a.Details.MLPFormats, want.mlp) {
			t.Errorf("%s: %q, attention %v, MLPs %v, %v", beside, a.Native, a.Details.AttentionFormats, a.Details.MLPFormats, err)
		}
	}
	if _, err := ParseQuantized(strings.NewReader(plain), strings.NewReader("{")); err == nil || !strings.Contains(err.Error(), "hf_quant_config.json") {
		t.Errorf("half a file: %v", err)
	}
	d := Deployment{Arch: Arch{Native: NVFP4}}.Normal()
	if got := d.split(8, Mix{.25, FP8: .75}, NVFP4); len(got) != 2 || got[0] != (weightGroup{2, NVFP4}) || got[1] != (weightGroup{6, FP8}) {
		t.Errorf("parts keep wider formats of their own: %v", got)
	}
	d.Precision.Weights = BF16
	if got := d.split(8, Mix{FP8: 1}, BF16); len(got) != 1 || got[0] != (weightGroup{8, BF16}) {
		t.Errorf("parts have no narrower format than the weights: %v", got)
	}
}

func alike(a, b Mix) bool {
	for f := range a {
		if math.Abs(a[f]-b[f]) > 1e-9 {
			return false
		}
	}
	return true
}

// What a checkpoint leaves in bf16 stands under as many keys as there are tools that quantise.
func TestPartsLeftAlone(t *testing.T) {
	const config = `,"torch_dtype":"bfloat16","quantization_config":{%s}`
	for quantisation, want := range map[string]Mix{
		`"quant_method":"gptq","bits":4,"dynamic":{"lm_head":{},"-:.*attn.*":{},"-:.*shared_expert.*":{}}`:                                             {BF16: 1},
		`"quant_method":"gptq","bits":4,"dynamic":{"+:.*attn.*":{"bits":8},"-:.*mtp.*":{}}`:                                                            {INT8: 1},
		`"quant_method":"auto-round","bits":4,"extra_config":{"model.layers.0.self_attn.q_proj":{"bits":16},"model.layers.1.self_attn":{"bits":16}}`:   {1. / 3, BF16: 2. / 3},
		`"quant_method":"auto-round","bits":4,"extra_config":{".*self_attn.*":{"bits":8}}`:                                                             {INT8: 1},
		`"quant_method":"fp8","ignored_layers":["lm_head","model.layers.0.self_attn.o_proj","model.layers.1.self_attn.o_proj"]`:                        {2. / 3, BF16: 1. / 3},
		`"quant_method":"quark","exclude":["*self_attn*"],"global_quant_config":{"weight":{"dtype":"fp4"}}`:                                            {BF16: 1},
		`"quant_method":"quark","layer_quant_config":{"*self_attn*":{"weight":{"dtype":"fp8_e4m3"}}},"global_quant_config":{"weight":{"dtype":"fp4"}}`: {FP8: 1},
	} {
		a, err := ParseConfig(strings.NewReader(fmt.Sprintf(llama, fmt.Sprintf(config, quantisation))))
		if err != nil || !alike(a.Details.AttentionFormats, want) {
			t.Errorf("%s: attention %v, %v, want %v", quantisation, a.Details.AttentionFormats, err, want)
		}
	}
}

// The weights of Llama-3.1-8B and Qwen3-30B-A3B, in GB, are the sum over matrices of what each is stored in: of the former
// 1.342 billion parameters of attention, .537 of them in o_proj, and three times 1.879 of MLPs in 32 layers, beside 2.10 GB of
// embeddings; of the latter 28.99 billion of experts and .906 of attention, beside 1.27 GB of embeddings and routers.
func TestWeightsByModules(t *testing.T) {
	const (
		dense   = `{"architectures":["LlamaForCausalLM"],"num_hidden_layers":32,"hidden_size":4096,"num_attention_heads":32,"num_key_value_heads":8,"intermediate_size":14336,"vocab_size":128256,"%s":{%s}}`
		experts = `{"architectures":["Qwen3MoeForCausalLM"],"num_hidden_layers":48,"hidden_size":2048,"num_attention_heads":32,"num_key_value_heads":4,"head_dim":128,"moe_intermediate_size":768,"num_experts":128,"num_experts_per_tok":8,"vocab_size":151936,"%s":{%s}}`
		groups  = `"quant_method":"compressed-tensors","format":"mixed-precision","config_groups":{"group_%d":{"targets":["%s"],"weights":{"num_bits":8,"type":"%s"}},"group_%d":{"targets":["%s"],"weights":{"num_bits":4,"type":"%s","group_size":%d}}}`
		fp8     = `"quant_method":"compressed-tensors","config_groups":{"group_0":{"targets":["%s"],"weights":{"num_bits":8,"type":"float"}}},"ignore":["lm_head"%s]`
		int4    = `"quant_method":"compressed-tensors","config_groups":{"group_0":{"targets":["Linear"],"weights":{"num_bits":4,"type":"int","group_size":128}}},"ignore":["lm_head"%s]`
		gptq    = `"quant_method":"gptq","bits":4,"group_size":128,"dynamic":{%s}`
		round   = `"quant_method":"auto-round","bits":4,"group_size":128,"extra_config":{%s}`
		plain   = `"quant_method":"fp8","modules_to_not_convert":["lm_head"%s]`
		self    = "re:.*self_attn.*"
	)
	ignoring := func(format string, names ...string) string {
		list := ""
		for _, name := range names {
			list += fmt.Sprintf(",%q", name)
		}
		return fmt.Sprintf(format, list)
	}
	targeted := func(target string, names ...string) string {
		return ignoring(strings.Replace(fp8, "%s", target, 1), names...)
	}
	for _, c := range []struct {
		base, quantisation string
		want               float64
		format             WeightFormat
	}{
		{dense, targeted("Linear"), 9.08, FP8},
		{dense, targeted(self), 14.72, FP8},
		{dense, targeted("Linear", "re:.*mlp.*"), 14.72, FP8},
		{dense, targeted("Linear", "re:.*"), 16.06, BF16},
		{dense, ignoring(plain, "self_attn"), 10.42, FP8},
		{dense, ignoring(plain, "q_proj", "k_proj", "v_proj", "o_proj"), 10.42, FP8},
		{dense, ignoring(plain, "qkv_proj", "o_proj"), 10.42, FP8},
		{dense, ignoring(plain, "down_proj"), 10.96, FP8},
		{dense, ignoring(plain, "o_proj"), 9.62, FP8},
		{dense, ignoring(plain, "model.layers.0", "model.layers.31"), 9.52, FP8},
		{dense, ignoring(plain, "model.layers.1"), 9.30, FP8},
		{dense, ignoring(plain, "model.layers.1.*"), 9.30, FP8},
		{dense, targeted("Linear", `re:.*layers\.(0|31)\..*`), 9.52, FP8},
		{dense, targeted("Linear", `re:.*layers\.\d\..*`), 11.26, FP8},
		{dense, ignoring(plain, "model.layers.*.self_attn", "*visual*"), 10.42, FP8},
		{dense, fmt.Sprintf(gptq, `"+:.*down_proj.*":{"bits":8}`), 6.63, INT4},
		{dense, fmt.Sprintf(gptq, `"-:.*down_proj.*":{}`), 8.51, INT4},
		{dense, fmt.Sprintf(round, `"model.layers.0.mlp":{"bits":16},".*self_attn.*":{"bits":8}`), 6.63, INT4},
		{experts, fmt.Sprintf(groups, 0, self, "float", 1, "re:.*experts.*", "float", 16), 18.48, NVFP4},
		{experts, fmt.Sprintf(groups, 1, self, "float", 0, "re:.*experts.*", "float", 16), 18.48, NVFP4},
		{experts, fmt.Sprintf(groups, 0, self, "float", 1, "Linear", "float", 16), 18.48, NVFP4},
		{experts, fmt.Sprintf(groups, 0, self, "int", 1, "re:.*experts.*", "int", 128), 17.24, INT4},
		{experts, fmt.Sprintf(groups, 0, "re:.*experts.*", "float", 1, self, "int", 128), 30.73, FP8},
		{experts, ignoring(int4, "re:.*experts.*"), 59.72, INT4},
		{experts, ignoring(int4, `re:.*mlp\.gate$`), 16.80, INT4},
	} {
		for _, key := range []string{"quantization_config", "compression_config"} {
			if key == "compression_config" && !strings.Contains(c.quantisation, "compressed-tensors") {
				continue
			}
			a, err := ParseConfig(strings.NewReader(fmt.Sprintf(c.base, key, c.quantisation)))
			got := weightBytes(Deployment{Arch: a, TP: 1}.Normal()) / 1e9
			if err != nil || a.Native != c.format || math.Abs(got-c.want) > 0.006 {
				t.Errorf("%s: %.3f GB in %s, %v, want %.2f in %s", c.quantisation, got, a.Native, err, c.want, c.format)
			}
		}
	}
	if _, err := ParseConfig(strings.NewReader(fmt.Sprintf(dense, "quantization_config", targeted("Linear", "re:.*(?!mlp).*")))); !errors.Is(err, errUnsupported) {
		t.Errorf("a pattern that cannot be read: %v", err)
	}
	if _, err := ParseConfig(strings.NewReader(fmt.Sprintf(dense, "quantization_config", `"quant_method":"bitsandbytes"`))); !errors.Is(err, errUnsupported) {
		t.Errorf("bitsandbytes: %v", err)
	}
}

// Of 8-bit integers those of weights alone are multiplied in bf16, at its rate, those of activations too by units for integers.
func TestIntegersOfWeightsAlone(t *testing.T) {
	base := `{"architectures":["LlamaForCausalLM"],"model_type":"llama","num_hidden_layers":32,"hidden_size":4096,"num_attention_heads":32,"num_key_value_heads":8,"intermediate_size":14336,"vocab_size":128256,"max_position_embeddings":8192,"quantization_config":`
	group := `{"quant_method":"compressed-tensors","config_groups":{"group_0":{"weights":{"num_bits":8,"type":"int"}`
	hw := deploy(t, "Llama-3.1-8B", "H100 SXM", 1).Hardware
	for config, rate := range map[string]float64{
		`{"quant_method":"gptq","bits":8}`: hw.Flops.BF16,
		group + `}}}`:                      hw.Flops.BF16,
		group + `,"input_activations":{"num_bits":8,"type":"int"}}}}`: hw.Flops.INT8,
	} {
		a := must.Get(ParseConfig(strings.NewReader(base + config + "}")))
		d := Deployment{Arch: a, Hardware: hw, TP: 1}
		memory := plan(d, EngineArgs{MaxModelLen: 4096})
		if got := roofline(t, d, "0.20.0").Bounds(MeanRequest{Prompt: 100, Output: 100}, memory).PeakFlops; a.Native != INT8 || got != rate {
			t.Errorf("%s: %v at %.4g operations/s, want %.4g", config, a.Native, got, rate)
		}
	}
	for name, want := range map[string]bool{"RedHatAI/Meta-Llama-3.1-8B-Instruct-quantized.w8a16": true, "RedHatAI/Meta-Llama-3.1-8B-Instruct-quantized.w8a8": false} {
		if a, err := catalog().Model(name); err != nil || a.Native != INT8 || a.Details.WeightOnly != want {
			t.Errorf("%s: %v, %v of weights alone, %v", name, a.Native, a.Details.WeightOnly, err)
		}
	}
}

// Patterns without end are refused before they are tried on every module.
func TestTooManyPatterns(t *testing.T) {
	var patterns []string
	for i := range 5000 {
		patterns = append(patterns, fmt.Sprintf("%q", fmt.Sprintf("re:.*foo%d.*", i)))
	}
	text := `{"architectures": ["LlamaForCausalLM"], "hidden_size": 4096, "intermediate_size": 14336, "num_attention_heads": 32, "num_hidden_layers": 1000, "vocab_size": 128256,
		"quantization_config": {"quant_method": "fp8", "modules_to_not_convert": [` + strings.Join(patterns, ", ") + `]}}`
	if _, err := ParseConfig(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), "5000 patterns of modules for 1000 layers") {
		t.Error(err)
	}
}
