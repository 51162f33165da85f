// Texts that describe a moment on the stage. Thread rule: pure.
#pragma once
#include <span>
#include <string>

#include "viz/model/stage/script.h"
#include "viz/model/tables/bubbles.h"

namespace ranklab::viz {

// Why a rank waits: "B0 is still on r2", "r3 comes last to all_reduce (it ran BW2)", "its work of the step is done".
std::string wait_words(const TraceStore& store, size_t rank_index, const IdleInterval& idle);
// What is moved on an axis for a purpose: "ep dispatch: tokens go to their experts".
std::string flow_words(Axis axis, Purpose purpose);
// A short name for a small cell: "3" for "layers.3", "3n" for "layers.3 norms", "e" for "embedding".
std::string bucket_letter(const std::string& bucket);
// The number of bits of a format such as "E4M3" (including 1 for the sign); 16 for other names.
int bits_of_format(const std::string& format);
// "r0", "r0 and r1", "r0 to r3 and r6", "r0 and 11 others".
std::string rooms_words(const StageScript& script, std::span<const int> rooms);

}  // namespace ranklab::viz
