// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

// Package forecast predicts what a controller will do to a set.
//
// The rule: nothing here decides. The real controller runs on a copy of the objects, in the simulator's API server and on a
// clock that jumps from one event to the next, until it has nothing more to write. Its writes are the forecast. Only the
// surroundings of the controller are assumed: that pods find nodes, how long they take to become ready and to end, and, in
// the bad case, that new ones never become ready. Each assumption is shown to the user.
//
// A [Forecast] is computed from an [Input] by [Run]. Its cost grows with the number of writes and pods. It is printed as
// text, as JSON, and as a picture.
package forecast
