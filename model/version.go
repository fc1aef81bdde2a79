package model

import (
	"fmt"
	"strconv"
	"strings"
)

// Version is an engine release; its zero value stands for the newest known one.
type Version struct {
	Major, Minor int
}

// ParseVersion reads the first two numbers of a release such as "0.15.1", "v0.20" or
// "0.11.0+cu128". The empty string is the newest known release.
func ParseVersion(s string) (Version, error) {
	if s == "" {
		return Version{}, nil
	}
	// Without fmt.Sscanf, which took a twentieth of the time of short simulations.
	major, rest, _ := strings.Cut(strings.TrimPrefix(s, "v"), ".")
	minor := rest[:len(rest)-len(strings.TrimLeft(rest, "0123456789"))]
	x, errX := strconv.Atoi(major)
	y, errY := strconv.Atoi(minor)
	if errX != nil || errY != nil || x < 0 {
		return Version{}, fmt.Errorf("engine version %q: want MAJOR.MINOR.PATCH, for example 0.15.1", s)
	}
	return Version{x, y}, nil
}

// versionOf parses a release and takes what it cannot parse for the newest one: a nightly build's hash is newer
// than any release.
func versionOf(s string) Version {
	v, _ := ParseVersion(s)
	return v
}

// oldestMinor and newestMinor are the oldest and the newest known release 0.x.
const oldestMinor, newestMinor = 10, 33

// BeyondKnown says that a release older or newer than all known ones is simulated as the oldest or newest; ""
// for any other, and for what is no release.
func BeyondKnown(s string) string {
	const how = "vLLM %d.%d is %s than 0.%d, the %s that is known, and simulated as that"
	switch v := versionOf(s); {
	case !v.AtLeast(0, oldestMinor):
		return fmt.Sprintf(how, v.Major, v.Minor, "older", oldestMinor, "oldest")
	case v != (Version{}) && v.AtLeast(0, newestMinor+1):
		return fmt.Sprintf(how, v.Major, v.Minor, "newer", newestMinor, "newest")
	}
	return ""
}

// minor returns x of a release 0.x; the newest known for the zero Version and for later ones.
func (v Version) minor() int {
	if v == (Version{}) || v.Major > 0 {
		return newestMinor
	}
	return min(v.Minor, newestMinor)
}

// AtLeast reports whether the release is the given one or later. The zero Version is later than all.
func (v Version) AtLeast(major, minor int) bool {
	if v == (Version{}) {
		return true
	}
	return v.Major > major || v.Major == major && v.Minor >= minor
}
