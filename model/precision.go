package model

// WeightFormat is the number format that a checkpoint's matrices are stored in.
type WeightFormat int

// The weight formats. FormatUnset stands for "the model's own".
const (
	FormatUnset WeightFormat = iota
	BF16
	FP16
	FP8
	INT8
	INT4
	NVFP4
	MXFP4
)

// Mix is how the parameters of a part divide among formats; FormatUnset stands for that of the weights. The
// zero value means all in that.
type Mix [MXFP4 + 1]float64

// String returns the name used in configurations: "bf16", "fp8"; empty if unset.
func (f WeightFormat) String() string { return f.names()[f] }

func (WeightFormat) names() []string {
	return []string{"", "bf16", "fp16", "fp8", "int8", "int4", "nvfp4", "mxfp4"}
}

// KVFormat is the number format of the KV cache.
type KVFormat int

// The KV cache formats. KVAuto is two bytes, unless [Deployment.Serving] replaces it.
const (
	KVAuto KVFormat = iota
	KVFP8
)

// String returns the name used in configurations: "auto" or "fp8".
func (f KVFormat) String() string { return f.names()[f] }

func (KVFormat) names() []string { return []string{"auto", "fp8"} }

// Precision is the formats that a deployment stores its numbers in. The zero value is the model's own.
type Precision struct {
	Weights WeightFormat
	KV      KVFormat
}

// Bytes returns the bytes of one weight, scales included: groups of 128 with a
// two-byte scale and a half-byte zero point for int4 (AWQ, GPTQ), an fp8 scale per 16
// weights for nvfp4, an 8-bit exponent per 32 for mxfp4 (OCP MX 1.0). The scales of
// fp8 and int8 (per channel or per 128 x 128 block) are below a thousandth.
func (f WeightFormat) Bytes() float64 {
	switch f {
	case FP8, INT8:
		return 1
	case INT4:
		return 0.5 + 2.5/128
	case NVFP4:
		return 0.5 + 1.0/16
	case MXFP4:
		return 0.5 + 1.0/32
	default:
		return 2
	}
}

// Bytes returns the bytes of one element of the KV cache.
func (f KVFormat) Bytes() float64 {
	if f == KVFP8 {
		return 1
	}
	return 2
}
