// Every exhibit, each defined in the file of its name. Internal to core/museum.
#pragma once
#include "core/museum/exhibit.h"

namespace ranklab::museum {

extern const Exhibit norm_averaged;
extern const Exhibit norm_unreduced;
extern const Exhibit output_norm_partial;

}  // namespace ranklab::museum
