// The file format of a parity map, which `ranklab parity --out FILE.json` writes and the window's panel opens. One JSON
// object; numbers that are not finite are null. Thread rule: pure, except for reading the file.
#pragma once
#include <string>

#include "viz/model/parity/parity_map.h"

namespace ranklab::viz {

std::string parity_file_text(const ParityMap& map);
// Throws kBadFile for a text that is not a parity map.
ParityMap parse_parity_file(const std::string& text, const std::string& path);
ParityMap read_parity_file(const std::string& path);

// The parity file next to a trace, "parity.json" in its folder; "" if there is none.
std::string parity_file_beside(const std::string& trace);
// Whether a file's name and beginning indicate a parity file; never throws.
bool is_parity_file(const std::string& path);

}  // namespace ranklab::viz
