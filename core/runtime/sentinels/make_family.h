// How a family of sentinels is made that the runtime does not have itself: the program hands it in with its components
// (RuntimeComponents::parity_watch). Thread rule: called on each rank's thread.
#pragma once
#include <functional>
#include <memory>

namespace ranklab {

struct SentinelContext;
class SentinelFamily;
class RankTable;

using MakeOwnFamily = std::function<std::unique_ptr<SentinelFamily>(SentinelContext&, RankTable&)>;

}  // namespace ranklab
