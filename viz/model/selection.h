// Events found by text: a selection names one event so that links, commands and people can write it down, a search
// finds all that hold some letters. Selection texts: "r3/B7" (rank 3, letters, microbatch; of collectives the
// sequence), "r3/2B7" with the stage, "r3/#812" (event number). Cost: O(events). Thread rule: as TraceStore.
#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "viz/model/trace_store.h"

namespace ranklab::viz {

// The first match that belongs to `step` (any when -1). Nothing when there is none; throws kInvalidArgument naming the
// part that is no selection.
std::optional<EventRef> find_selection(const TraceStore& store, std::string_view text, int step = -1);
// A text that finds the event again, given its step.
std::string selection_text(const TraceStore& store, EventRef ref);

// Every event whose name or block text has `text` in it (letter case ignored), by rank and recording; at most `limit`.
std::vector<EventRef> search_events(const TraceStore& store, std::string_view text, size_t limit = 1000);

}  // namespace ranklab::viz
