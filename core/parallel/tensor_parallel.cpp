#include "core/parallel/tensor_parallel.h"

#include <utility>

namespace ranklab {
namespace {

thread_local bool whole = false;

}  // namespace

WholeSequenceScope::WholeSequenceScope() : previous_(std::exchange(whole, true)) {}
WholeSequenceScope::~WholeSequenceScope() { whole = previous_; }

bool sequences_are_whole() { return whole; }

}  // namespace ranklab
