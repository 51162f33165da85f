// What the stage says of a moment, in words. Thread rule: pure.
#pragma once
#include <span>
#include <string>

#include "viz/model/stage/script.h"
#include "viz/model/tables/bubbles.h"

namespace ranklab::viz {

// Why a rank waits: "B0 is still on r2", "r3 comes last to all_reduce (it ran BW2)", "its work of the step is done".
std::string wait_words(const TraceStore& store, size_t rank_index, const IdleInterval& idle);
// What an axis and a purpose move: "ep dispatch: tokens go to their experts".
std::string flow_words(Axis axis, Purpose purpose);
// What fits a small cell: "3" of "layers.3", "3n" of "layers.3 norms", "e" of "embedding".
std::string bucket_letter(const std::string& bucket);
// The bits of "E4M3" (1 of sign); of other names 16.
int bits_of_format(const std::string& format);
// "r0", "r0 and r1", "r0 to r3 and r6", "r0 and 11 others".
std::string rooms_words(const StageScript& script, std::span<const int> rooms);

}  // namespace ranklab::viz
