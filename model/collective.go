package model

import (
	"math"
	"sort"
)

// allReduceSizes are the message sizes of the columns below, in bytes.
var allReduceSizes = [...]float64{8 * kib, 64 * kib, 128 * kib, 256 * kib, 1 * mib, 4 * mib, 16 * mib, 64 * mib, 256 * mib}

// allReduceRow is one system at one tensor-parallel degree, in microseconds by message size.
type allReduceRow struct {
	degree int
	micros [len(allReduceSizes)]float64
}

// The measured all-reduces: vLLM's custom kernels in CUDA graphs, from aiconfigurator's tables of vLLM 0.24
// (2026-08).
var (
	allReduceH100 = []allReduceRow{
		{2, [...]float64{4.5, 4.8, 5.2, 6.3, 12.4, 45, 156, 469, 1706}},
		{4, [...]float64{4.8, 5.8, 7.2, 11.4, 18.6, 53.5, 191, 619, 2305}},
		{8, [...]float64{5.3, 7.9, 10.8, 12.0, 19.4, 50.7, 178, 577, 2117}},
	}
	allReduceH200 = []allReduceRow{ // degrees 2 and 4 as H100: the same links and switch
		{2, [...]float64{4.5, 4.8, 5.2, 6.3, 12.4, 45, 156, 469, 1706}},
		{4, [...]float64{4.8, 5.8, 7.2, 11.4, 18.6, 53.5, 191, 619, 2305}},
		{8, [...]float64{5.2, 7.9, 10.1, 11.1, 18.1, 48, 166, 562, 2035}},
	}
	allReduceB200 = []allReduceRow{
		{2, [...]float64{7.1, 7.4, 7.7, 9.4, 25.3, 50.6, 87, 280, 1005}},
		{4, [...]float64{7.4, 8.1, 8.6, 18.0, 23.8, 43, 119, 353, 1291}},
		{8, [...]float64{8.1, 9.4, 25.8, 26.1, 20.7, 39, 111, 442, 1337}},
	}
	// FlashInfer's kernels, including the norm after the sum (fuse_allreduce_rms).
	allReduceB200Fused = []allReduceRow{
		{2, [...]float64{5.2, 5.1, 5.1, 5.4, 8.0, 21, 87, 280, 1005}},
		{4, [...]float64{5.5, 5.4, 5.8, 7.1, 14.5, 46, 123, 353, 1291}},
		{8, [...]float64{5.9, 6.2, 7.6, 10.7, 30, 55, 111, 442, 1337}},
	}
	allReduceA100 = []allReduceRow{
		{2, [...]float64{5.3, 5.7, 6.6, 8, 15, 90, 222, 746, 2799}},
		{4, [...]float64{6.0, 7.8, 9.9, 14.5, 26, 118, 288, 996, 3721}},
		{8, [...]float64{6.5, 11.4, 17.1, 18.9, 28, 129, 364, 1161, 4223}},
	}
	// PCIe 4: no custom kernels beyond a pair. Eight are the geometric mean of 27, 108, 207, 445, 2080, 8168, 30062, 120267
	// and 480823 us, 1 GB/s of bus bandwidth, and of a ring with the pair's 10: NCCL counts on 10 between two sockets
	// (log of eight RTX 4090 in nccl-tests issue 307), and eight RTX 5090, about as fast as RTX 4090, have 28 (NVIDIA/nccl
	// issue 1639).
	allReduceL40S = []allReduceRow{
		{2, [...]float64{6.2, 11, 18, 32, 117, 450, 1777, 7007, 27988}},
		{8, [...]float64{27, 62, 99, 179, 678, 2562, 9694, 38428, 153486}},
	}
	allReduceRTXPro = []allReduceRow{ // PCIe 5
		{2, [...]float64{5.1, 8.2, 11, 18, 56, 245, 933, 3630, 13845}},
		{8, [...]float64{27.5, 49, 84, 156, 223, 675, 2547, 9923, 38802}},
	}
)

// customLimit is the largest message of vLLM's custom all-reduce; larger ones go through NCCL.
const customLimit = 8 * mib

// fabricPeers is the number of peers over which the data sheet's rate of an Infinity Fabric mesh is summed:
// eight GPUs, each with a link to each of the seven others.
const fabricPeers = 7

// collective times the all-reduces of one tensor-parallel group. Its zero value is a
// group of one GPU, which takes no time.
type collective struct {
	sizes   []float64 // rising
	seconds []float64
	limit   float64 // the table holds up to here, the line latency + bytes/rate above
	latency float64
	rate    float64
	skew    float64                            // added to each call
	skewTwo float64                            // from this size the two-shot kernel runs, which waits twice
	between struct{ latency, perByte float64 } // added between nodes, seconds
}

// newCollective returns the all-reduce over tp GPUs of this kind, fused with the norm after it if asked.
func newCollective(hw Hardware, tp int, c LinkConstants, fused bool) collective {
	if tp <= 1 {
		return collective{}
	}
	var k collective
	switch hw.Link.Kind {
	case LinkNVLink:
		k = nvlinkCollective(hw, tp, c, fused)
	case LinkInfinityFabric:
		k = fabricCollective(hw.Link.Rate, tp, c)
	case LinkOther:
		k = ringCollective(hw.Link.Rate, tp, c)
	default:
		k = pcieCollective(hw, tp)
	}
	for i := range k.seconds {
		k.seconds[i] *= c.Scale
	}
	k.latency *= c.Scale
	k.rate /= c.Scale
	k.skew = c.RankSkew * math.Log2(float64(tp))
	k.skewTwo = twoShotFrom(tp)
	return k
}

// twoShotFrom returns the message size from which vLLM's custom all-reduce takes two steps; with two GPUs it
// never does.
func twoShotFrom(tp int) float64 {
	switch {
	case tp <= 2:
		return math.Inf(1)
	case tp <= 4:
		return 512 * kib
	default:
		return 256 * kib
	}
}

// across adds the traffic between nodes: after each GPU of a node has summed its part of the message, a ring
// over the nodes sums the parts of equal rank. Within a node it assumes the time of one node large enough for
// all GPUs.
func (k collective) across(dep Deployment, gpus int, c LinkConstants) collective {
	nodes := float64(dep.spans(gpus))
	if nodes <= 1 {
		return k
	}
	k.between.latency = c.NodeLatency * math.Log2(2*nodes) / 2 * c.Scale
	k.between.perByte = 2 * (nodes - 1) / nodes / float64(dep.NodeGPUs) / (c.NodeShare * dep.Hardware.Node.Rate) * c.Scale
	return k
}

// nvlinkCollective uses the measured table up to the custom kernels' limit and a line above it; on NVLink 5,
// where NCCL's payload rate does not grow with the link (265, 205 and 200 GB/s with 2, 4 and 8 B200), the table
// at all sizes. An unmeasured link gets the table of its generation, or H100's, with its slope scaled by the
// rate (H800: 200 GB/s).
func nvlinkCollective(hw Hardware, tp int, c LinkConstants, fused bool) collective {
	k := collective{sizes: allReduceSizes[:], limit: customLimit, latency: c.NCCLLatency, rate: c.NCCLShare * hw.Link.Rate}
	measured := nvlink4Rate
	switch {
	case hw.Generation == GenerationAmpere:
		k.seconds, measured = interpolateDegree(allReduceA100, tp), nvlink3Rate
	case hw.Generation == GenerationBlackwell:
		k.limit, measured = math.Inf(1), hw.Link.Rate
		k.seconds = interpolateDegree(allReduceB200, tp)
		if fused {
			k.seconds = interpolateDegree(allReduceB200Fused, tp)
		}
	case hw.Generation == GenerationHopper && hw.Bandwidth >= h200Bandwidth:
		k.seconds = interpolateDegree(allReduceH200, tp)
	default:
		k.seconds = interpolateDegree(allReduceH100, tp)
	}
	if hw.Link.Rate > 0 && hw.Link.Rate != measured {
		floor := k.seconds[0]
		for i := range k.seconds {
			k.seconds[i] = floor + (k.seconds[i]-floor)*measured/hw.Link.Rate
		}
	}
	if k.rate <= 0 {
		k.limit = math.Inf(1)
	}
	return k
}

// nvlink4Rate and nvlink3Rate are the link rates behind the tables of H100 and H200, and of A100, in bytes/s.
const nvlink4Rate, nvlink3Rate = 450e9, 300e9

// pcieCollective uses tables at all sizes, one for PCIe 5 and one for PCIe 4. Four GPUs lie between two and eight; a patched
// driver that lets four RTX 4090 copy from each other halves their times (nccl-tests output in pull request 22 of
// tinygrad/open-gpu-kernel-modules, 2024), but served RTX 3090 and 4090 take longer than the tables say.
func pcieCollective(hw Hardware, tp int) collective {
	rows := allReduceL40S
	if hw.PCIe >= 50e9 {
		rows = allReduceRTXPro
	}
	return collective{sizes: allReduceSizes[:], seconds: interpolateDegree(rows, tp), limit: math.Inf(1)}
}

// fabricCollective models AMD's fully connected mesh: every GPU sends a 1/tp part to each peer over that peer's
// own link, twice (reduce-scatter, all-gather), so that a pair has one seventh of the data sheet's rate. Links
// reach about half of their peak in public measurements; the floor is taken as twice that of NVLink's custom
// kernels. Not tested by any served run. A mesh of unknown rate is treated as a ring.
func fabricCollective(rate float64, tp int, c LinkConstants) collective {
	if rate <= 0 {
		return ringCollective(rate, tp, c)
	}
	peer := rate / fabricPeers
	return collective{
		latency: 10e-6 * math.Log2(float64(2*min(tp, 8))) / 2,
		rate:    0.5 * peer * float64(min(tp, 8)) / 2,
	}
}

// ringCollective is the textbook ring, for links without measured collectives.
func ringCollective(rate float64, tp int, c LinkConstants) collective {
	if rate <= 0 {
		rate = 25e9
	}
	n := float64(tp)
	return collective{latency: c.NCCLLatency / 2 * math.Log2(2*n) / 2, rate: c.NCCLShare * rate * n / (2 * (n - 1))}
}

// interpolateDegree returns the row of a degree: by a power law between measured degrees, and beyond the
// largest by that of the last two.
func interpolateDegree(rows []allReduceRow, tp int) []float64 {
	out := make([]float64, len(allReduceSizes))
	hi := sort.Search(len(rows), func(i int) bool { return rows[i].degree >= tp })
	hi = min(max(hi, 1), len(rows)-1)
	a, b := rows[hi-1], rows[hi]
	w := math.Log(float64(tp)/float64(a.degree)) / math.Log(float64(b.degree)/float64(a.degree))
	for i := range out {
		growth := b.micros[i] / a.micros[i]
		if w > 1 {
			growth = max(growth, 1) // more GPUs than measured are never faster
		}
		out[i] = 1e-6 * a.micros[i] * math.Pow(growth, w)
		if w > 1 && i > 0 {
			out[i] = max(out[i], out[i-1])
		}
	}
	return out
}

// time returns the seconds of one all-reduce of the given bytes.
func (k *collective) time(bytes float64) float64 {
	if bytes <= 0 || k.rate == 0 && k.seconds == nil {
		return 0
	}
	wait := k.skew + k.between.latency + bytes*k.between.perByte
	if bytes >= k.skewTwo {
		wait += k.skew
	}
	if bytes > k.limit || k.seconds == nil {
		return wait + k.latency + bytes/k.rate
	}
	return wait + k.table(bytes)
}

// table interpolates linearly in size; below the smallest size the time is constant, above the largest the last
// segment continues.
func (k *collective) table(bytes float64) float64 {
	if bytes <= k.sizes[0] {
		return k.seconds[0]
	}
	i := 1
	for i < len(k.sizes)-1 && bytes > k.sizes[i] {
		i++
	}
	x0, x1, y0, y1 := k.sizes[i-1], k.sizes[i], k.seconds[i-1], k.seconds[i]
	return y0 + (y1-y0)*(bytes-x0)/(x1-x0)
}
