// Package control is iteration control: after an attempt at a piece of work
// it says whether to proceed, to try again with feedback, to ask for the
// review, or to ask a person, and it words the feedback and the question.
//
// A loop under the policy "controlled" and `pawl check` both ask it, so that
// there is one logic. The package is pure: what it knows is in its arguments,
// and it never counts, stores or starts anything.
package control
