package report

import (
	"reflect"

	"planner/internal/printable"
)

// shown returns a document, or a part of one, with all texts made safe to show: some come from servers, engines
// and files. Every printer prints only its result.
func shown[T any](of T) T {
	out := reflect.New(reflect.TypeFor[T]()).Elem()
	show(out, reflect.ValueOf(&of).Elem())
	return out.Interface().(T)
}

// show sets a value to a copy of another.
func show(to, from reflect.Value) {
	to.Set(from)
	switch from.Kind() {
	case reflect.String:
		to.SetString(printable.Text(from.String()))
	case reflect.Struct:
		for i := range from.NumField() {
			if to.Field(i).CanSet() {
				show(to.Field(i), from.Field(i))
			}
		}
	case reflect.Slice:
		to.Set(reflect.MakeSlice(from.Type(), from.Len(), from.Len()))
		for i := range from.Len() {
			show(to.Index(i), from.Index(i))
		}
	case reflect.Pointer, reflect.Interface:
		if !from.IsNil() {
			inner := reflect.New(from.Elem().Type()).Elem()
			show(inner, from.Elem())
			if from.Kind() == reflect.Pointer {
				inner = inner.Addr()
			}
			to.Set(inner)
		}
	}
}
