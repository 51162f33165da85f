// A parity map as a file: what `ranklab parity --out FILE.json` writes and the window's panel opens. One JSON object;
// numbers that are not finite are null. Thread rule: pure, but for reading the file.
#pragma once
#include <string>

#include "viz/model/parity/parity_map.h"

namespace ranklab::viz {

std::string parity_file_text(const ParityMap& map);
// Throws kBadFile for a text that is none.
ParityMap parse_parity_file(const std::string& text, const std::string& path);
ParityMap read_parity_file(const std::string& path);

// The file of that kind beside a trace, "parity.json" in its folder; "": there is none.
std::string parity_file_beside(const std::string& trace);
// Whether a file's name and beginning say that it is one; never throws.
bool is_parity_file(const std::string& path);

}  // namespace ranklab::viz
