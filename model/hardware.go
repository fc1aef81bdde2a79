package model

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// ErrNoFigure is wrapped by the errors that report a figure which the catalog lists
// no value for, where the computation cannot go on without it.
var ErrNoFigure = errors.New("no figure known")

// Hardware is the data sheet of one GPU. A zero figure is an unknown one: the
// methods that need it say which is missing instead of computing with it.
type Hardware struct {
	Name       string
	Vendor     string
	Generation Generation // decides which measured efficiencies apply

	Memory    float64 // bytes on the board that software can see, before the driver takes its part
	Bandwidth float64 // bytes/s of the main memory, data sheet
	Flops     Flops
	Link      Link
	Node      NodeSpec
	PCIe      float64 // bytes/s per direction to the host
	TDP       float64 // watts
	Price     Price

	Source string // where the figures were read, with dates
	Notes  string // what a reader should know before trusting them
}

// Flops are dense operations per second by the format of the operands; the sparse
// figures of marketing material are twice these. Zero: the format has no fast path
// on this GPU, or the figure is unknown.
type Flops struct {
	BF16 float64
	FP8  float64
	FP4  float64
	INT8 float64

	MeasuredBF16 float64 // best matrix product anybody measured, 0 if nobody did
}

// Link is the connection between the GPUs of one machine that tensor parallelism
// uses.
type Link struct {
	Kind LinkKind
	Rate float64 // bytes/s per direction and GPU, over all its links together
}

// NodeSpec is how many GPUs one link joins, and what joins them to those of other nodes. Zero
// figures are unknown ones.
type NodeSpec struct {
	GPUs int
	Link string  // as on the data sheet: "InfiniBand NDR or RoCE"
	Rate float64 // bytes/s per direction and GPU
}

// usualNode is how many GPUs a server has where nobody says.
const usualNode = 8

// NodeGPUs returns how many GPUs one link joins.
func (h Hardware) NodeGPUs() int { return cmp.Or(h.Node.GPUs, usualNode) }

// LinkKind says how GPUs reach each other.
type LinkKind int

// The kinds of link. PCIe is the zero value: without a better link, that is what
// two GPUs in a machine have.
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

// Price is a dated list price of one GPU for one hour, and how far other prices are from
// it. A price of 0 is not known.
type Price struct {
	USDPerHour float64
	Basis      string // whose list, how read
	Date       string // of the list, as the source dates it; empty if it does not

	Low, High           float64 // of the on-demand lists that are known
	Rented              float64 // for three years
	OwnedLow, OwnedHigh float64 // estimates of the whole cost of owners: large fleets, small ones
	TermsBasis          string  // whose figures the last three are, with their date
}

// String says whose price it is, with its date.
func (p Price) String() string {
	if p.Date == "" || strings.Contains(p.Basis, p.Date) {
		return p.Basis
	}
	return p.Basis + " (" + p.Date + ")"
}

// Generation names a family of GPUs that share kernels, and therefore the fraction
// of the data sheet that those kernels reach.
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
)

// generationMarks maps a part of a GPU's name to its generation; the first match
// wins, so that "RTX PRO 6000 Blackwell" is not taken for a data-centre part, nor "RTX 5000 Ada" for a GeForce 50.
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
	{"l4", GenerationAda},
}

// CDNA reports whether the GPU is one of AMD's for data centres.
func (h Hardware) CDNA() bool { return strings.HasPrefix(string(h.Generation), "cdna") }

// GeForce reports whether the GPU is a consumer's card: its tensor cores accumulate in fp32
// at half rate, its memory has no error correction, and its PCIe link no peer-to-peer
// copies.
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
	GenerationBlackwellRTX, GenerationCDNA3, GenerationCDNA4}

// Check returns an error that wraps [ErrNoFigure] and names the first figure without
// which nothing can be computed on this GPU.
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
