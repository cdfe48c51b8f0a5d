// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"crypto/sha256"
	"encoding/binary"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// alphabet is that of k8s.io/apimachinery/pkg/util/rand, which generateName uses: no vowels, so no words, and no
	// characters that look alike.
	alphabet = "bcdfghjklmnpqrstvwxz2456789"
	idLength = 5

	// IDs is the number of different ids, 27⁵. A Random set cannot have more pods than that.
	IDs = 27 * 27 * 27 * 27 * 27

	// The permutation is computed on numbers of 24 bits, the fewest that hold IDs, in two halves.
	halfBits = 12
	halfMask = 1<<halfBits - 1
	rounds   = 4
)

// Sequence is the order in which a set gives ids to its pods. It is a permutation: every id comes once among the first
// [IDs]. Different sets have unrelated sequences. A sequence does not depend on the revision, because a manager that still
// sees an older spec must try the same ids as one that sees the newest.
//
// The permutation is a Feistel network of four rounds. It is indistinguishable from a random one if its round function is
// (Luby and Rackoff, SIAM J. Comput. 17(2), 1988). Cycle walking cuts it down from 2²⁴ to 27⁵ values (Black and Rogaway,
// CT-RSA 2002). Its keys are the SHA-256 of the seed.
type Sequence struct {
	keys [rounds]uint64
}

// NewSequence returns the sequence of the set with the given UID.
func NewSequence(uid types.UID) Sequence {
	sum := sha256.Sum256([]byte(uid))
	var s Sequence
	for i := range s.keys {
		s.keys[i] = binary.BigEndian.Uint64(sum[8*i:])
	}
	return s
}

// At returns the i-th id of the sequence, of five characters. The sequence starts again at [IDs]; a negative i is
// counted from the end.
func (s Sequence) At(i int) string {
	x := uint32((i%IDs + IDs) % IDs)
	// A permutation returns to its start in the end. So walking on until the result is an id ends at x at the latest. On
	// average it takes 2²⁴/27⁵ = 1.17 steps.
	for x = s.permute(x); x >= IDs; {
		x = s.permute(x)
	}
	var id [idLength]byte
	for j := range id {
		id[j] = alphabet[x%uint32(len(alphabet))]
		x /= uint32(len(alphabet))
	}
	return string(id[:])
}

// PlaceOf returns the place of an id in the sequence, the i of At, between 0 and IDs−1; −1 if the text is not an id.
func (s Sequence) PlaceOf(id string) int {
	if len(id) != idLength {
		return -1
	}
	x := uint32(0)
	for j := idLength - 1; j >= 0; j-- {
		digit := strings.IndexByte(alphabet, id[j])
		if digit < 0 {
			return -1
		}
		x = x*uint32(len(alphabet)) + uint32(digit)
	}
	for x = s.permuteBack(x); x >= IDs; {
		x = s.permuteBack(x)
	}
	return int(x)
}

// Next returns the first n free ids from a place of the sequence on, in the order of the sequence. It asks for each id at
// most once. It returns fewer than n only if fewer are free.
func (s Sequence) Next(from, n int, taken func(id string) bool) []string {
	var free []string
	for i := 0; i < IDs && len(free) < n; i++ {
		if id := s.At(from%IDs + i); !taken(id) {
			free = append(free, id)
		}
	}
	return free
}

// permute maps the numbers below 2²⁴ one to one onto themselves.
func (s Sequence) permute(x uint32) uint32 {
	left, right := x>>halfBits, x&halfMask
	for _, key := range s.keys {
		left, right = right, left^uint32(mix(key^uint64(right))&halfMask)
	}
	return left<<halfBits | right
}

// permuteBack returns the inverse of permute.
func (s Sequence) permuteBack(x uint32) uint32 {
	left, right := x>>halfBits, x&halfMask
	for i := range s.keys {
		left, right = right^uint32(mix(s.keys[rounds-1-i]^uint64(left))&halfMask), left
	}
	return left<<halfBits | right
}

// mix returns the finalizer of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014, with the constants of Stafford's variant 13):
// every bit of the result depends on every bit of x.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
