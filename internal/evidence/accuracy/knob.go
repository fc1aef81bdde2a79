package main

import "planner/model"

// knob is one constant, or a few that move together, that served runs of this
// collection had a part in. Its value is a multiple of the default in terms of time: 1
// is the default, 1.1 takes 10 % longer (an efficiency is divided by it). In that form
// predictions are nearly linear in it.
type knob struct {
	name string
	// prior and sd say what would be assumed without the collection, and how surely.
	prior, sd float64
	because   string
	apply     func(c *model.Constants, m float64)
	// moves reports whether the knob can matter for a server.
	moves func(*server) bool
}

func everywhere(*server) bool    { return true }
func isFP8(s *server) bool       { return s.dep.Precision.Weights == model.FP8 }
func isHopperFP8(s *server) bool { return isFP8(s) && !isBlackwell(s) }
func isNVFP4(s *server) bool     { return s.dep.Precision.Weights == model.NVFP4 }
func isDenseBF16(s *server) bool { return !isFP8(s) && !isNVFP4(s) }
func isMoE(s *server) bool       { return s.dep.Arch.MoE.Present() }
func isBlackwell(s *server) bool { return s.dep.Hardware.Generation == model.GenerationBlackwell }
func isRTX(s *server) bool       { return s.dep.Hardware.Generation == model.GenerationBlackwellRTX }
func isSync(s *server) bool      { return !s.limits.Async(s.dep.Hardware.Generation, s.dep.PP) }
func isGroup(s *server) bool     { return s.dep.TP > 1 }
func hasMXFP4(s *server) bool    { return s.dep.Precision.Weights == model.MXFP4 && !isBlackwell(s) }

// knobs are the constants that were set with the help of served runs.
var knobs = []knob{
	{"weights bf16", 1.06, 0.06, "GEMM tables without the overlap of chained kernels",
		func(c *model.Constants, m float64) { c.Weights[model.BF16] /= m }, isDenseBF16},
	{"weights fp8", 1, 0.06, "GEMM tables", func(c *model.Constants, m float64) { c.Weights[model.FP8] /= m }, isHopperFP8},
	{"weights fp8, B200", 1, 0.10, "GEMM tables", func(c *model.Constants, m float64) { c.Weights[model.FP8] /= m },
		func(s *server) bool { return isFP8(s) && isBlackwell(s) }},
	{"weights nvfp4, B200", 1, 0.15, "GEMM tables, which drift by 30 % with the release", func(c *model.Constants, m float64) { c.Weights[model.NVFP4] /= m }, isNVFP4},
	{"floors of fp8, B200", 1.2, 0.25, "GEMM tables", func(c *model.Constants, m float64) { c.Fixed.FormatLayer[model.FP8] *= m },
		func(s *server) bool { return isFP8(s) && isBlackwell(s) }},
	{"floors of nvfp4, B200", 1.2, 0.25, "GEMM tables", func(c *model.Constants, m float64) { c.Fixed.FormatLayer[model.NVFP4] *= m }, isNVFP4},
	{"prefill nvfp4, B200", 1, 0.20, "GEMM tables", func(c *model.Constants, m float64) { c.Prefill[model.NVFP4] /= m }, isNVFP4},
	{"prefill fp8, B200", 1, 0.15, "GEMM tables", func(c *model.Constants, m float64) { c.Prefill[model.FP8] /= m },
		func(s *server) bool { return isFP8(s) && isBlackwell(s) }},
	{"weights of experts", 1.08, 0.10, "as the dense GEMM tables",
		func(c *model.Constants, m float64) { c.Experts = c.Experts.Scaled(1/m, 1) }, func(s *server) bool { return isMoE(s) && !isBlackwell(s) }},
	{"weights of experts, B200", 1.07, 0.15, "as the dense GEMM tables",
		func(c *model.Constants, m float64) { c.Experts = c.Experts.Scaled(1/m, 1) }, func(s *server) bool { return isMoE(s) && isBlackwell(s) }},
	{"uneven routing", 1, 0.5, "guess", func(c *model.Constants, m float64) { c.Uneven *= m }, isMoE},
	{"unpacking of experts", 1.1, 0.10, "kernel tables", func(c *model.Constants, m float64) { c.Unpacked /= m }, hasMXFP4},
	{"tiles of fp8", 1, 0.10, "kernel tables", func(c *model.Constants, m float64) {
		for i := range c.Tiles {
			c.Tiles[i] = 1 + (c.Tiles[i]-1)*m
		}
	}, func(s *server) bool { return isFP8(s) && !isBlackwell(s) && !isMoE(s) }},
	{"KV", 1, 0.05, "attention tables", func(c *model.Constants, m float64) { c.KV[model.BF16] /= m; c.KV[model.FP8] /= m },
		func(s *server) bool { return !isRTX(s) }},
	{"KV, FlashAttention 2", 1, 0.08, "attention tables of A100", func(c *model.Constants, m float64) { c.KV[model.BF16] /= m }, isRTX},
	{"prefill bf16", 1, 0.08, "GEMM tables", func(c *model.Constants, m float64) { c.Prefill[model.BF16] /= m }, isDenseBF16},
	{"prefill fp8", 1, 0.10, "GEMM tables", func(c *model.Constants, m float64) { c.Prefill[model.FP8] /= m }, isHopperFP8},
	{"prefill of mxfp4 experts", 0.92, 0.15, "kernel tables of Marlin, 0.16 to 0.19",
		func(c *model.Constants, m float64) { c.PrefillExperts[model.NVFP4] /= m }, hasMXFP4},
	{"prefill of other experts", 1, 0.30, "guess", func(c *model.Constants, m float64) {
		c.PrefillExperts[model.BF16] /= m
		c.PrefillExperts[model.FP8] /= m
	}, func(s *server) bool { return isMoE(s) && !hasMXFP4(s) && !isBlackwell(s) }},
	{"prefill of mxfp4 experts, B200", 1, 0.30, "guess", func(c *model.Constants, m float64) { c.PrefillExperts[model.NVFP4] /= m },
		func(s *server) bool { return isMoE(s) && isBlackwell(s) }},
	{"skew", 1, 0.30, "kernels with mixed contexts", func(c *model.Constants, m float64) { c.Attention.Skew *= m }, everywhere},
	{"layer", 1.1, 0.25, "floors of nine kernels", func(c *model.Constants, m float64) { c.Fixed.Layer *= m }, everywhere},
	{"launches", 1, 0.50, "guess", func(c *model.Constants, m float64) { c.Fixed.Launch *= m }, everywhere},
	{"launches without graphs", 1, 0.50, "guess", func(c *model.Constants, m float64) { c.Fixed.LaunchAll *= m }, isBlackwell},
	{"layer of experts", 0.90, 0.25, "kernel timings of one token in bf16 and fp8, 22 us; router and choice, 4 us each",
		func(c *model.Constants, m float64) { c.Fixed.MoELayer *= m }, func(s *server) bool { return isMoE(s) && !isBlackwell(s) }},
	{"layer of experts, B200", 1.25, 0.25, "kernel timings of one token in nvfp4, 21 us; router, 4 us",
		func(c *model.Constants, m float64) { c.Fixed.MoELayer *= m }, func(s *server) bool { return isMoE(s) && isBlackwell(s) }},
	{"block-scaled experts", 1.2, 0.50, "floors of two block-scaled products in GEMM tables, 60 us each", func(c *model.Constants, m float64) { c.Fixed.BlockExpert *= m },
		func(s *server) bool { return isFP8(s) && s.dep.Arch.Details.BlockFP8 }},
	{"step", 1.2, 0.50, "126 to 550 us elsewhere", func(c *model.Constants, m float64) { c.Fixed.Step *= m }, everywhere},
	{"request", 2.2, 1, "4.4 us elsewhere", func(c *model.Constants, m float64) { c.Fixed.Request *= m }, everywhere},
	{"synchronous scheduling", 2, 1, "0.5 to 2 ms elsewhere", func(c *model.Constants, m float64) { c.Fixed.SyncStep *= m }, isSync},
	{"slowest rank", 0, 1, "nothing", func(c *model.Constants, m float64) { c.Link.RankSkew *= m },
		func(s *server) bool { return isGroup(s) }},
	{"large all-reduces", 1.2, 0.30, "collective tables", func(c *model.Constants, m float64) {
		c.Link.NCCLLatency *= m
		c.Link.NCCLShare /= m
	}, isGroup},
	{"frontend", 1.33, 0.30, "9.3 ms elsewhere", func(c *model.Constants, m float64) { c.Frontend.Request *= m },
		func(s *server) bool { return !s.engineTimes }},
	{"frontend per token", 1, 0.50, "1 to 2 ms per 1,000 elsewhere", func(c *model.Constants, m float64) { c.Frontend.PromptToken *= m },
		func(s *server) bool { return !s.engineTimes }},
}

// turned returns the default constants of a server with every knob at a value.
func turned(s *server, values []float64) model.Constants {
	c := defaults(s)
	for i := range knobs {
		if knobs[i].moves(s) {
			knobs[i].apply(&c, max(values[i], 0.01))
		}
	}
	return c
}
