package curve

import (
	"cmp"
	"math"
	"slices"
)

// simplex is what Nelder and Mead's method holds: one vertex more than there are
// dimensions, the best one first, and the centroid of all but the worst.
type simplex struct {
	loss     func([]float64) float64
	vertices []vertex
	centroid []float64
	// trial is the point that was evaluated last; left counts the evaluations to come.
	trial vertex
	left  int
}

type vertex struct {
	x []float64
	f float64
}

// A descent ends when so many iterations for each dimension gain less than this, absolute
// and relative.
const (
	leastGain, leastShare = 1e-12, 1e-8
	patience              = 8
)

// minimise looks for the minimum of a loss by Nelder and Mead's method from a simplex at
// start, of two dimensions or more, with edges of a size, as Lagarias et al. (1998) state it, with the coefficients of
// Gao and Han (2012). It evaluates the loss so many times at most. gonum's, of which it is
// the arithmetic, hands each evaluation to another goroutine, which takes longer than ours.
func minimise(loss func([]float64) float64, start []float64, size float64, evaluations int) []float64 {
	dim := len(start)
	s := simplex{loss: loss, centroid: make([]float64, dim), trial: vertex{x: make([]float64, dim)}, left: evaluations}
	best := vertex{slices.Clone(start), s.value(start)}
	for i := range start {
		v := vertex{x: slices.Clone(start)}
		v.x[i] += size
		v.f = s.value(v.x)
		s.vertices = append(s.vertices, v)
	}
	s.vertices = append(s.vertices, vertex{slices.Clone(start), best.f})
	known, idle := best.f, 0
	for s.order(); s.left > 0; {
		copy(best.x, s.vertices[0].x)
		best.f = s.vertices[0].f
		if best.f < known && known-best.f > leastShare*max(math.Abs(best.f), math.Abs(known))+leastGain {
			known, idle = best.f, 0
		} else if idle++; idle >= patience*dim {
			break
		}
		s.iterate()
	}
	return best.x
}

// order sorts the vertices and finds the centroid.
func (s *simplex) order() {
	slices.SortFunc(s.vertices, func(a, b vertex) int { return cmp.Compare(a.f, b.f) })
	dim := len(s.centroid)
	clear(s.centroid)
	for _, v := range s.vertices[:dim] {
		for j, x := range v.x {
			s.centroid[j] += x
		}
	}
	for j := range s.centroid {
		s.centroid[j] /= float64(dim)
	}
}

// iterate replaces the worst vertex by a better one, or shrinks the simplex.
func (s *simplex) iterate() {
	dim := len(s.centroid)
	expansion, contraction := 1+2/float64(dim), 0.75-1/(2*float64(dim))
	best, second, worst := s.vertices[0].f, s.vertices[dim-1].f, s.vertices[dim].f
	reflected := s.try(1)
	switch {
	case reflected >= best && reflected < second:
		s.replace()
	case reflected < best:
		if f := s.try(expansion); f >= reflected {
			s.at(1)
			s.trial.f = reflected
		}
		s.replace()
	case reflected < worst:
		if f := s.try(contraction); f <= reflected {
			s.replace()
		} else {
			s.shrink()
		}
	default:
		if f := s.try(-contraction); f < worst {
			s.replace()
		} else {
			s.shrink()
		}
	}
}

// at moves the trial to a point on the line from the worst vertex through the centroid,
// so many times as far beyond this as the worst is before it.
func (s *simplex) at(scale float64) {
	worst := s.vertices[len(s.centroid)].x
	for j, c := range s.centroid {
		s.trial.x[j] = (c-worst[j])*scale + c
	}
}

// try evaluates the loss there.
func (s *simplex) try(scale float64) float64 {
	s.at(scale)
	s.trial.f = s.value(s.trial.x)
	return s.trial.f
}

func (s *simplex) value(x []float64) float64 {
	s.left--
	return s.loss(x)
}

// replace puts the trial in the place of the worst vertex.
func (s *simplex) replace() {
	dim := len(s.centroid)
	spare := s.vertices[dim].x
	i := dim
	for ; i > 0 && s.vertices[i-1].f >= s.trial.f; i-- {
		s.vertices[i] = s.vertices[i-1]
	}
	s.vertices[i] = s.trial
	worst := s.vertices[dim].x
	for j, x := range s.trial.x {
		s.centroid[j] += -1 / float64(dim) * worst[j]
		s.centroid[j] += 1 / float64(dim) * x
	}
	s.trial.x = spare
}

// shrink moves all vertices towards the best one.
func (s *simplex) shrink() {
	dim := len(s.centroid)
	share := 1 - 1/float64(dim)
	best := s.vertices[0].x
	for i := range s.vertices[1:] {
		v := &s.vertices[1+i]
		for j := range v.x {
			v.x[j] = (v.x[j]-best[j])*share + best[j]
		}
		v.f = s.value(v.x)
	}
	s.order()
}
