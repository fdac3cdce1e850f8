package web

// A role is what a caller may do. The admin may read, too.
type role string

const (
	nobody    role = ""
	reader    role = "read"
	adminRole role = "admin"
)

// An access says whether a caller may change something.
type access string

const (
	accessOff access = "off" // there is no admin token, so no caller may
	accessNo  access = "no"  // the caller has not shown the admin token
	accessYes access = "yes"
)
