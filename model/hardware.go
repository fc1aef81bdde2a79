package model

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// ErrNoFigure is wrapped by errors about a figure that the catalog lacks and the computation needs.
var ErrNoFigure = errors.New("no figure known")

// Hardware is the data sheet of one GPU. A zero figure is unknown: the methods that need it name it as missing
// instead of computing with it.
type Hardware struct {
	Name       string
	Vendor     string
	Generation Generation // decides which measured efficiencies apply

	Memory    float64 // bytes on the board visible to software, before the driver takes its part
	Bandwidth float64 // bytes/s of the main memory, data sheet
	Flops     Flops
	Link      Link
	Node      NodeSpec
	PCIe      float64 // bytes/s per direction to the host
	TDP       float64 // watts
	Price     Price

	Source string // where the figures were read, with dates
	Notes  string // what to know before trusting them
}

// Flops are dense operations per second by operand format; the sparse figures of marketing material are twice
// these. Zero: the format has no fast path on this GPU, or the figure is unknown.
type Flops struct {
	BF16 float64
	FP8  float64
	FP4  float64
	INT8 float64

	MeasuredBF16 float64 // best matrix product that anybody measured; 0: none
}

// Link is the connection between the GPUs of one machine that tensor parallelism uses.
type Link struct {
	Kind LinkKind
	Rate float64 // bytes/s per direction and GPU, over all its links together
}

// NodeSpec is how many GPUs one link connects, and the link between nodes. Zero figures are unknown.
type NodeSpec struct {
	GPUs int
	Link string  // as on the data sheet: "InfiniBand NDR or RoCE"
	Rate float64 // bytes/s per direction and GPU
}

// usualNode is the number of GPUs in a server if unknown.
const usualNode = 8

// NodeGPUs returns the number of GPUs that one link connects.
func (h Hardware) NodeGPUs() int { return cmp.Or(h.Node.GPUs, usualNode) }

// LinkKind says how GPUs reach each other.
type LinkKind int

// The kinds of link. PCIe is the zero value: two GPUs in a machine have at least that.
const (
	LinkPCIe LinkKind = iota
	LinkNVLink
	LinkInfinityFabric
	LinkOther // scale-up Ethernet, ICI: rate known, no collective measured
)

// String returns the kind's name for reports.
func (k LinkKind) String() string {
	return [...]string{"PCIe", "NVLink", "Infinity Fabric", "scale-up network"}[k]
}

// Price is a dated list price of one GPU for one hour, with the range of other prices. 0 is an unknown price.
type Price struct {
	USDPerHour float64
	Basis      string // whose list, and how it was read
	Date       string // of the list, as the source dates it; empty if it does not

	Low, High           float64 // range of the known on-demand lists
	Rented              float64 // on a three-year term
	OwnedLow, OwnedHigh float64 // estimates of an owner's total cost: large fleets, small ones
	TermsBasis          string  // sources and dates of the last three
}

// String says whose price it is, with its date.
func (p Price) String() string {
	if p.Date == "" || strings.Contains(p.Basis, p.Date) {
		return p.Basis
	}
	return p.Basis + " (" + p.Date + ")"
}

// Generation names a family of GPUs that share kernels, and therefore the share of the data sheet's peak that
// these reach.
type Generation string

// The generations that the constants distinguish. GenerationUnknown gets the
// defaults and wider error bars.
const (
	GenerationUnknown      Generation = ""
	GenerationAmpere       Generation = "ampere"
	GenerationAda          Generation = "ada"
	GenerationHopper       Generation = "hopper"
	GenerationBlackwell    Generation = "blackwell"     // data centre: B200, B300, GB200, GB300
	GenerationBlackwellRTX Generation = "blackwell-rtx" // RTX PRO 6000, RTX 5090
	GenerationCDNA3        Generation = "cdna3"
	GenerationCDNA4        Generation = "cdna4"
	GenerationCPU          Generation = "cpu" // processors in place of a GPU
)

// generationMarks maps a part of a GPU's name to its generation; the first match wins, so that "RTX PRO 6000
// Blackwell" is not taken for a data-centre part, nor "RTX 5000 Ada" for a GeForce 50.
var generationMarks = []struct {
	mark string
	gen  Generation
}{
	{" ada", GenerationAda}, {"rtx pro", GenerationBlackwellRTX}, {"rtx 50", GenerationBlackwellRTX},
	{"rtx a", GenerationAmpere}, {"rtx 40", GenerationAda}, {"l40", GenerationAda},
	{"gb200", GenerationBlackwell}, {"gb300", GenerationBlackwell},
	{"b200", GenerationBlackwell}, {"b300", GenerationBlackwell}, {"b100", GenerationBlackwell},
	{"gh200", GenerationHopper}, {"h100", GenerationHopper}, {"h200", GenerationHopper},
	{"h800", GenerationHopper}, {"h20", GenerationHopper},
	{"a100", GenerationAmpere}, {"a800", GenerationAmpere}, {"a10", GenerationAmpere},
	{"a30", GenerationAmpere}, {"a40", GenerationAmpere}, {"rtx 30", GenerationAmpere},
	{"mi355", GenerationCDNA4}, {"mi350", GenerationCDNA4},
	{"mi300", GenerationCDNA3}, {"mi325", GenerationCDNA3},
	{"l20", GenerationAda}, {"l4", GenerationAda},
	{"cpu", GenerationCPU}, {"processor", GenerationCPU}, {"xeon", GenerationCPU}, {"epyc", GenerationCPU},
}

// measured reports whether anything was measured on the generation; the others get the same defaults, and their peaks may
// be what a user guessed.
func (g Generation) measured() bool { return g != GenerationUnknown && g != GenerationCPU }

// FromHopper reports whether the generation is NVIDIA's Hopper or one after it.
func (g Generation) FromHopper() bool {
	return g == GenerationHopper || g == GenerationBlackwell || g == GenerationBlackwellRTX
}

// CDNA reports whether the GPU is one of AMD's for data centres.
func (h Hardware) CDNA() bool { return strings.HasPrefix(string(h.Generation), "cdna") }

// GeForce reports whether the GPU is a consumer card: its tensor cores accumulate in fp32 at half rate, its
// memory has no ECC, and its PCIe link no peer-to-peer copies.
func (h Hardware) GeForce() bool {
	return geForceMark.MatchString(h.Name) && !workstationMark.MatchString(h.Name)
}

var geForceMark, workstationMark = regexp.MustCompile("(?i)rtx [345]0"), regexp.MustCompile("(?i)ada|pro")

func generationOf(name string) Generation {
	name = strings.ToLower(name)
	for _, m := range generationMarks {
		if strings.Contains(name, m.mark) {
			return m.gen
		}
	}
	return GenerationUnknown
}

// generations lists the names that a catalog file may give.
var generations = []Generation{GenerationAmpere, GenerationAda, GenerationHopper, GenerationBlackwell,
	GenerationBlackwellRTX, GenerationCDNA3, GenerationCDNA4, GenerationCPU}

// Check returns an error that wraps [ErrNoFigure] and names the first figure without which nothing can be
// computed on this GPU.
func (h Hardware) Check() error {
	missing := func(what string) error {
		return fmt.Errorf("gpu %q: %s: %w", h.Name, what, ErrNoFigure)
	}
	switch {
	case h.Memory <= 0:
		return missing("memory size")
	case h.Bandwidth <= 0:
		return missing("memory bandwidth")
	case h.Flops.BF16 <= 0:
		return missing("dense bf16 compute")
	}
	return nil
}
