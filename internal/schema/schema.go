// Package schema describes JSON output by JSON Schema 2020-12. It reads the types that [planner/internal/wire]
// writes, by the same rules: a key names the unit of its time, an unknown number is null, and a list never is.
package schema

import (
	"cmp"
	"encoding"
	"encoding/json"
	"fmt"
	"path"
	"reflect"
	"slices"
	"strings"
	"time"

	"planner/internal/list"
	"planner/internal/wire"
)

// Definition describes an output of any of some types.
type Definition struct {
	Title, Description string
	// Types holds one value of each.
	Types []any
}

// Schema returns the JSON Schema, which accepts keys that are not described, as keys may be added. It fails if a
// type writes its own JSON without declaring its form.
func (d Definition) Schema() (map[string]any, error) {
	b := builder{defs: map[string]any{}}
	b.said, b.err = readComments()
	forms := list.Map(d.Types, func(v any) map[string]any { return b.of(reflect.TypeOf(v)) })
	return map[string]any{"$schema": "https://json-schema.org/draft/2020-12/schema", "title": d.Title,
		"description": d.Description, "$defs": b.defs, "anyOf": forms}, b.err
}

// builder collects the described types.
type builder struct {
	defs map[string]any
	said map[string]string // by [readComments]
	err  error
}

// implements reports whether a type, or a pointer to it, has the methods of an interface.
func implements[I any](t reflect.Type) bool {
	methods := reflect.TypeFor[I]()
	return t.Implements(methods) || t.Kind() != reflect.Pointer && reflect.PointerTo(t).Implements(methods)
}

func (b *builder) of(t reflect.Type) map[string]any {
	switch {
	case t == reflect.TypeFor[time.Duration]():
		return kinds("number", "null")
	case t.Kind() == reflect.Pointer:
		return nullable(b.of(t.Elem()))
	case implements[wire.Written](t):
		as := reflect.TypeOf(reflect.New(t).Interface().(wire.Written).Written())
		if as.Kind() == reflect.Pointer {
			return nullable(b.named(t, as.Elem()))
		}
		return b.named(t, as)
	case t.Kind() == reflect.Interface:
		return map[string]any{}
	case implements[encoding.TextMarshaler](t):
		return kinds("string")
	case implements[json.Marshaler](t):
		b.err = fmt.Errorf("schema: %v writes JSON of its own and does not say how", t)
		return nil
	case t.Kind() == reflect.Struct:
		return b.named(t, t)
	}
	return b.plain(t)
}

func (b *builder) plain(t reflect.Type) map[string]any {
	switch t.Kind() {
	case reflect.Bool:
		return kinds("boolean")
	case reflect.Float64:
		return kinds("number", "null")
	case reflect.String:
		return kinds("string")
	case reflect.Slice:
		s := kinds("array")
		s["items"] = b.of(t.Elem())
		return s
	case reflect.Array:
		return map[string]any{"type": "array", "items": b.of(t.Elem()), "minItems": t.Len(), "maxItems": t.Len()}
	case reflect.Map:
		s := kinds("object")
		s["additionalProperties"] = b.of(t.Elem())
		return s
	case reflect.Int, reflect.Int64, reflect.Uint64, reflect.Int32, reflect.Uint32:
		return kinds("integer")
	}
	b.err = fmt.Errorf("schema: nothing is known of %v", t)
	return nil
}

func kinds(names ...string) map[string]any {
	if len(names) == 1 {
		return map[string]any{"type": names[0]}
	}
	return map[string]any{"type": names}
}

// nullable describes a value that may also be null.
func nullable(s map[string]any) map[string]any {
	if types, ok := s["type"].([]string); ok && slices.Contains(types, "null") {
		return s
	}
	return map[string]any{"anyOf": []map[string]any{s, kinds("null")}}
}

func nameOf(t reflect.Type) string { return path.Base(t.PkgPath()) + "." + t.Name() }

func (b *builder) named(t, as reflect.Type) map[string]any {
	name := nameOf(t)
	ref := map[string]any{"$ref": "#/$defs/" + name}
	if _, known := b.defs[name]; known {
		return ref
	}
	b.defs[name] = nil // it may contain itself
	if as.Kind() != reflect.Struct {
		b.defs[name] = b.plain(as)
		return ref
	}
	properties, required := map[string]any{}, []string{}
	// Keys of an outer type hide those of embedded types.
	for level := []reflect.Type{as}; len(level) > 0; {
		var next []reflect.Type
		for _, s := range level {
			for f := range s.Fields() {
				key, options, _ := strings.Cut(f.Tag.Get("json"), ",")
				_, hidden := properties[key]
				switch {
				case options == "embed", f.Anonymous && key == "":
					if f.Type.Kind() == reflect.Pointer {
						f.Type = f.Type.Elem()
					}
					next = append(next, f.Type)
				case key == "-" || key == "" || hidden || !f.IsExported():
				default:
					property := b.of(f.Type)
					if text := cmp.Or(b.said[nameOf(s)+"."+f.Name], b.said[name+"."+f.Name]); text != "" {
						property["description"] = text
					}
					properties[key] = property
					if !strings.HasPrefix(options, "omit") {
						required = append(required, key)
					}
				}
			}
		}
		level = next
	}
	s := map[string]any{"type": "object", "properties": properties, "required": required}
	if text := b.said[name]; text != "" {
		s["description"] = text
	}
	b.defs[name] = s
	return ref
}
