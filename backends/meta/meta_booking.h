// Books the bytes that the tensors would have if they had data: under the rank and category of the thread that made
// them, until they are freed, as core/sim/memory_scope.h does for real tensors; no data is allocated. Cost: a small
// block per tensor.
#pragma once

namespace ranklab::meta {

// Applies to every tensor created on the meta device from now on. Idempotent.
void install_booking();

}  // namespace ranklab::meta
