package stat

// Select reorders values, none of which is NaN, so that the k-th smallest, counted from 0, has its place in the sorted
// order, with none greater before it and none smaller after it (Hoare, "Algorithm 65: Find", 1961).
func Select(v []float64, k int) {
	for low, high := 0, len(v)-1; low < high; {
		pivot, i, j := v[k], low, high
		for i <= j {
			for v[i] < pivot {
				i++
			}
			for pivot < v[j] {
				j--
			}
			if i <= j {
				v[i], v[j] = v[j], v[i]
				i, j = i+1, j-1
			}
		}
		if j < k {
			low = i
		}
		if k < i {
			high = j
		}
	}
}
