package load

import (
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"planner/sweep/measure"
)

// Part is what one generator brought of a trial, as it is kept beside its
// records so that several can be joined.
type Part struct {
	// Share is what it sent of the schedule.
	Share Share
	// Trial holds the conditions of its share.
	Trial measure.Trial
	// Start is the time of its clock from which the trial's times count.
	Start time.Time
	Obs   measure.Observation
	// Vitals say how the generator itself fared. They are written for people and
	// not read back.
	Vitals Vitals
}

// partFile is a Part on disk, without what the journal and the file of records
// hold.
type partFile struct {
	Share   Share     `json:"share"`
	Start   time.Time `json:"start"`
	End     int64     `json:"end_ns"`
	Aborted string    `json:"aborted,omitempty"`
	Doubts  []string  `json:"doubts"`
	Remarks []string  `json:"remarks"`
	// OtherLoad is that of the observation.
	OtherLoad bool `json:"other_load,omitempty"`
	// Gaps are the inter-token times of the window by class, each a histogram of
	// microseconds in HdrHistogram's compressed V2 format; null where the gaps
	// between events are not those between tokens.
	Gaps   []string   `json:"gaps_us"`
	Client clientFile `json:"client"`
}

// clientFile is what a generator says of itself, for people.
type clientFile struct {
	Due          int     `json:"due"`
	Left         int     `json:"sent"`
	Dropped      int     `json:"dropped"`
	PeakInFlight int     `json:"peak_in_flight"`
	OpenFiles    int     `json:"open_file_limit"`
	Processors   int     `json:"processors"`
	CPU          float64 `json:"processor_share"`
	Lag50        float64 `json:"send_lag_p50_ms"`
	Lag99        float64 `json:"send_lag_p99_ms"`
	LagMax       float64 `json:"send_lag_max_ms"`
	GCPause      float64 `json:"gc_pause_max_ms"`
	Wait99       float64 `json:"processor_wait_p99_ms"`
}

func (v *Vitals) file() clientFile {
	ms := func(d time.Duration) float64 { return float64(d) / 1e6 }
	return clientFile{
		Due: v.Due, Left: v.Left, Dropped: v.Dropped, PeakInFlight: v.PeakInFlight, OpenFiles: v.OpenFiles, Processors: v.Processors, CPU: v.CPU,
		Lag50: ms(v.Lag50), Lag99: ms(v.Lag99), LagMax: ms(v.LagMax), GCPause: ms(v.GCPause), Wait99: ms(v.Wait99),
	}
}

// Write keeps a part as JSON. Trial and records are kept elsewhere.
func (p *Part) Write(w io.Writer) error {
	f := partFile{
		Share: p.Share, Start: p.Start.UTC(), End: int64(p.Obs.End), Aborted: p.Obs.Aborted, Client: p.Vitals.file(),
		Doubts: append([]string{}, p.Obs.Doubts...), Remarks: append([]string{}, p.Obs.Remarks...), OtherLoad: p.Obs.OtherLoad,
	}
	for i, h := range p.Obs.ClassGaps {
		b, err := h.EncodeV2()
		if err != nil {
			return fmt.Errorf("encode inter-token times of class %d: %w", i, err)
		}
		f.Gaps = append(f.Gaps, string(b))
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(f)
}

// ReadPart reads what [Part.Write] wrote and adds what was kept elsewhere.
func ReadPart(r io.Reader, t measure.Trial, records []measure.Record) (Part, error) {
	var f partFile
	if err := json.NewDecoder(r).Decode(&f); err != nil {
		return Part{}, fmt.Errorf("read part: %w", err)
	}
	p := Part{Share: f.Share, Trial: t, Start: f.Start, Obs: measure.Observation{
		Records: records, End: time.Duration(f.End), Aborted: f.Aborted, Doubts: f.Doubts, Remarks: f.Remarks, OtherLoad: f.OtherLoad, Server: unknownServer(""),
	}}
	for i, g := range f.Gaps {
		h, err := hdrhistogram.Decode([]byte(g))
		if err != nil {
			return Part{}, fmt.Errorf("read inter-token times of class %d: %w", i, err)
		}
		p.Obs.ClassGaps = append(p.Obs.ClassGaps, h)
	}
	if len(p.Obs.ClassGaps) > 0 {
		p.Obs.Gaps = sumOf(p.Obs.ClassGaps...)
	}
	return p, nil
}

// unknownServer is an engine that says nothing of itself but its kind.
func unknownServer(kind string) measure.Server {
	return measure.Server{Kind: kind, KVBlocks: -1, BlockTokens: -1, Preemptions: -1, HitRate: -1, PeakKV: -1}
}
