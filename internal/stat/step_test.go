package stat

import "testing"

// TestUpperHasNoStep: with many more requests than a clump holds, the probability of no exceedance
// hardly ever rises with the share, even across commonShare, where the distribution of counts
// changes.
func TestUpperHasNoStep(t *testing.T) {
	for _, phi := range []float64{1, 5, 20, 40} {
		d, n := Dispersion{At: phi, Level: 0.1, Gamma: Growth}, 20*phi
		last := 1.0
		for p := 0.01; p < 0.99; p += 0.002 {
			if got := d.CountBelow(0, n, p); got > 1.5*last {
				t.Errorf("phi %g: none of %g have a probability of %.3g with a share of %.3g, and %.3g with less", phi, n, got, p, last)
			} else {
				last = got
			}
		}
	}
}
