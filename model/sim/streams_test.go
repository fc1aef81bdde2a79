package sim

import (
	"reflect"
	"slices"
	"testing"

	"planner/internal/list"
	"planner/model"
	"planner/sweep/workload"
)

// TestStreams cuts steps of slots by hand as llama_batch_allocr::split_equal does.
func TestStreams(t *testing.T) {
	decode := func(context int) model.Batch {
		return model.Batch{Decodes: 1, Context: context, Longest: context, Sampled: 1}
	}
	for _, c := range []struct {
		name  string
		items []batchItem
		want  []model.Batch
	}{
		{"neighbours", []batchItem{{r: &sequence{slot: 1, computed: 20, out: 1}, tokens: 1, samples: true}, {r: &sequence{slot: 2, computed: 30, out: 1}, tokens: 1, samples: true}},
			[]model.Batch{{Decodes: 2, Context: 50, Longest: 30, Sampled: 2}}},
		{"apart", []batchItem{{r: &sequence{slot: 1, computed: 20, out: 1}, tokens: 1, samples: true}, {r: &sequence{slot: 3, computed: 30, out: 1}, tokens: 1, samples: true}},
			[]model.Batch{decode(20), decode(30)}},
		// Slots 0 and 2 decode, and 1 has a prompt: 0 takes one of its tokens with it, 2 comes before the rest.
		{"a prompt", []batchItem{{r: &sequence{slot: 0, computed: 30, out: 1}, tokens: 1, samples: true}, {r: &sequence{slot: 2, computed: 20, out: 1}, tokens: 1, samples: true}, {r: &sequence{slot: 1, computed: 5}, tokens: 5, samples: true}},
			[]model.Batch{{Decodes: 1, Context: 30, Longest: 30, Sampled: 1, Chunks: []model.Chunk{{Tokens: 1}}}, decode(20), {Sampled: 1, Chunks: []model.Chunk{{Tokens: 4, Context: 1}}}}},
		{"prompts", []batchItem{{r: &sequence{slot: 0, computed: 4}, tokens: 4, samples: true}, {r: &sequence{slot: 1, computed: 17}, tokens: 7}},
			[]model.Batch{{Sampled: 1, Chunks: []model.Chunk{{Tokens: 4}, {Tokens: 4, Context: 10}}}, {Chunks: []model.Chunk{{Tokens: 3, Context: 14}}}}},
		// At most eight tokens in a part.
		{"long prompts", []batchItem{{r: &sequence{slot: 0, computed: 6}, tokens: 6, samples: true}, {r: &sequence{slot: 1, computed: 9}, tokens: 9, samples: true}},
			[]model.Batch{{Chunks: []model.Chunk{{Tokens: 4}, {Tokens: 4}}}, {Sampled: 1, Chunks: []model.Chunk{{Tokens: 2, Context: 4}, {Tokens: 2, Context: 4}}}, {Sampled: 1, Chunks: []model.Chunk{{Tokens: 3, Context: 6}}}}},
	} {
		s := &scheduler{config: Config{Seqs: 4, MicroBatch: 8}}
		var got []model.Batch
		s.split(&stepBatch{items: c.items}, func(part model.Batch) {
			part.Chunks = slices.Clone(part.Chunks)
			got = append(got, part)
		})
		for i := range got {
			if len(got[i].Chunks) == 0 {
				got[i].Chunks = nil
			}
		}
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

// TestSlots makes steps of eight tokens for two slots: the first request gets the last slot, and the prompt that came
// later goes first, as its slot does. A third request waits for a slot and takes the one that was left first.
func TestSlots(t *testing.T) {
	c := Config{Seqs: 2, BatchTokens: 8, MicroBatch: 8, ModelLen: 100, Blocks: 100}
	c.Layout.BlockTokens = 16
	s := newScheduler(c)
	for id, q := range []workload.Request{{Prompt: 6, Output: 9}, {Prompt: 6, Output: 1}, {Prompt: 3, Output: 1}} {
		s.add(id, &q, false)
	}
	for step, want := range [][][3]int{ // request, slot, tokens
		{{1, 0, 6}, {0, 1, 2}},
		{{2, 0, 3}, {0, 1, 4}},
		{{0, 1, 1}},
	} {
		for {
			if _, launched := s.launch(); !launched {
				break
			}
		}
		b := s.schedule()
		got := list.Map(b.items, func(i batchItem) [3]int { return [3]int{i.r.id, i.r.slot, i.tokens} })
		if !slices.Equal(got, want) {
			t.Errorf("step %d: %v, want %v", step+1, got, want)
		}
		s.output(b)
	}
}
