#include "viz/app/window.h"

#include "viz/app/gl_window.h"

namespace ranklab::viz {

int run_window(const VizRequest& request) {
  GlWindow window(request);
  if (request.opened) request.opened();
  while (!window.closed() && !(request.closes && request.closes())) window.turn();
  return 0;
}

}  // namespace ranklab::viz
