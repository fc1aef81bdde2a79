package measure

import (
	"encoding/json"
	"fmt"
)

// plainKnobs are knobs without methods.
type plainKnobs Knobs

// wireKnobs are knobs in a file, where a knob that is not known is null.
type wireKnobs struct {
	*plainKnobs
	PrefixCaching *bool `json:"prefix_caching"`
}

// MarshalJSON writes the knobs.
func (k Knobs) MarshalJSON() ([]byte, error) {
	w := wireKnobs{plainKnobs: (*plainKnobs)(&k)}
	if !k.PrefixUnknown {
		w.PrefixCaching = &k.PrefixCaching
	}
	return json.Marshal(w)
}

// UnmarshalJSON reads what MarshalJSON wrote. Keys that are not there are zero.
func (k *Knobs) UnmarshalJSON(data []byte) error {
	var out Knobs
	off := false
	w := wireKnobs{(*plainKnobs)(&out), &off}
	if err := json.Unmarshal(data, &w); err != nil {
		return fmt.Errorf("read knobs: %w", err)
	}
	if w.PrefixCaching == nil {
		out.PrefixUnknown = true
	} else {
		out.PrefixCaching = *w.PrefixCaching
	}
	*k = out
	return nil
}
