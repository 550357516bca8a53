// Package forge speaks to the place where a repository's issues and pull
// requests are: GitHub, or Gitea and Forgejo. It has the token, and keeps it:
// neither an agent nor a gate sees it. What comes from there was
// written by strangers: it is bounded, and is data. It decides nothing, and
// tries nothing again: a [*LaterError] says when that makes sense.
//
// The two kinds differ in few places. Each of these asks [Client.speaksGitea].
package forge
