// Package must ends a test whose preparation fails.
package must

// Get is a value that comes without an error; with one it panics.
func Get[T any](v T, err error) T {
	OK(err)
	return v
}

// OK panics with an error.
func OK(err error) {
	if err != nil {
		panic(err)
	}
}
