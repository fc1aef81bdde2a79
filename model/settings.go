package model

// EngineFeatures are what is configured of a simulated engine besides its release and its
// knobs. The zero value leaves all of it to the engine.
type EngineFeatures struct {
	Kernels     Kernels     // what is computed with
	Speculation Speculation // tokens proposed ahead
	LoRA        LoRA        // adapters that requests choose among
}
