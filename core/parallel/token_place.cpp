#include "core/parallel/token_place.h"

namespace ranklab {
namespace {

thread_local TokenPlace t_place;

}  // namespace

TokenPlace token_place() { return t_place; }
void set_token_place(const TokenPlace& place) { t_place = place; }

}  // namespace ranklab
