// What to do about sizes that do not fit each other (core/base/size_error.h), where all settings are known: the values
// next to those given with which the whole configuration resolves. A check by itself knows its own two numbers alone,
// and what it recommends may be refused by the next one. Cost: resolves some dozens of configurations. Thread rule:
// pure.
#pragma once
#include <map>
#include <string>

#include "core/base/size_error.h"
#include "core/config/train_config.h"

namespace ranklab {

// Its text, whose `fix` are proven values of the settings that it mentions: "use --tp 1 or 2, or --num-attention-heads
// 8". Where no change of one of them will do, its own, followed by what the next check would say.
ErrorText with_fitting_sizes(const TrainConfig& config, const std::map<std::string, std::string>& origins,
                             const SizeError& error);

}  // namespace ranklab
