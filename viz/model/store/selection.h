// Finds events by text. A selection names one event for links, commands and people; a search finds all events that
// contain some letters. Selection texts: "r3/B7" (rank 3, letters, microbatch; for collectives the sequence), "r3/2B7"
// with the stage, "r3/#812" (event number). Cost: O(events). Thread rule: TraceStore's.
#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "viz/model/store/trace_store.h"

namespace ranklab::viz {

// The first match that belongs to `step` (-1: any step). RETURNS: nothing if there is none; throws kInvalidArgument
// naming the part that is not a valid selection.
std::optional<EventRef> find_selection(const TraceStore& store, std::string_view text, int step = -1);
// A text that selects the event within its step.
std::string selection_text(const TraceStore& store, EventRef ref);

// Every event whose name or block text contains `text` (letter case ignored), ordered by rank and then as recorded; at
// most `limit`.
std::vector<EventRef> search_events(const TraceStore& store, std::string_view text, size_t limit = 1000);

}  // namespace ranklab::viz
