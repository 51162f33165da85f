// Advice for sizes that do not fit each other (core/base/size_error.h), given where all settings are known: the values
// closest to the given ones for which the whole configuration resolves. A single check knows only its own two numbers,
// so the next check might refuse what it recommends. Cost: resolves several dozen configurations. Thread rule: pure.
#pragma once
#include <map>
#include <string>

#include "core/base/size_error.h"
#include "core/config/train_config.h"

namespace ranklab {

// The text of `error` in which `fix` is replaced by values that were verified to work, for the settings that it
// mentions: "use --tp 1 or 2, or --num-attention-heads 8". Where changing only one of these settings does not help, the
// original advice is kept, followed by what the next check would report.
ErrorText with_fitting_sizes(const TrainConfig& config, const std::map<std::string, std::string>& origins,
                             const SizeError& error);

}  // namespace ranklab
