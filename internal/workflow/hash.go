package workflow

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
)

// hashed is what the hash of an instance is made of, as JSON in this order.
// What says how a step is run, not what it does, is left out: title, timeout,
// retry, optional, parallelism. Fields are added at the end, never renamed, and
// a change of meaning raises Version.
type hashed struct {
	Version      int      `json:"version"`
	ID           string   `json:"id"`
	Work         Work     `json:"work"`
	If           string   `json:"if"`
	Env          []Pair   `json:"env"` // the workflow's, then the step's
	Matrix       []Pair   `json:"matrix"`
	Outputs      []Pair   `json:"outputs"`
	Alternatives []Work   `json:"alternatives"`
	Verify       []string `json:"verify"`
	Dir          string   `json:"dir"`
	Needs        []string `json:"needs"` // hashes, in topological order
}

// hash gives every instance the hash of what it does and of all that it builds
// on, and the plan that of all of them. Two plans in which an instance has the
// same hash do the same up to and with it, as far as the file says.
func (p *Plan) hash(env []Pair) {
	all := sha256.New()
	for i := range p.Instances {
		in := &p.Instances[i]
		s := in.Step.Step
		h := hashed{
			Version: 1, ID: in.ID, Work: s.Work, If: s.If, Env: append(append([]Pair{}, env...), s.Env...), Matrix: in.Matrix,
			Outputs: s.Outputs, Alternatives: s.Alternatives, Verify: s.Verify, Dir: s.WorkingDirectory,
		}
		for _, n := range in.Needs {
			h.Needs = append(h.Needs, p.Instances[n].Hash)
		}
		in.Hash = digest(h)
		_, _ = all.Write([]byte(in.Hash)) // a hash takes everything
	}
	p.Hash = hex.EncodeToString(all.Sum(nil))[:hashLength]
}

// hashLength is in hexadecimal digits: 128 bits.
const hashLength = 32

// InputHash is the hash of an instance with what it was really given: the
// texts as they were filled in, in the order in which the step has them. A
// result is good for a later run if this is the same.
func (in Instance) InputHash(filled []string) string {
	return digest(struct {
		Plan   string   `json:"plan"`
		Filled []string `json:"filled"`
	}{in.Hash, filled})
}

func digest(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		panic("workflow: hash: " + err.Error()) // made of texts only
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])[:hashLength]
}
