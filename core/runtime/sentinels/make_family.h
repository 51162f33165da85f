// How the program provides a family of sentinels that is not part of the runtime: it passes this function with its
// components (RuntimeComponents::parity_watch). Thread rule: called on each rank's thread.
#pragma once
#include <functional>
#include <memory>

namespace ranklab {

struct SentinelContext;
class SentinelFamily;
class RankTable;

using MakeOwnFamily = std::function<std::unique_ptr<SentinelFamily>(SentinelContext&, RankTable&)>;

}  // namespace ranklab
