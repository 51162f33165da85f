#include "viz/app/software_renderer.h"

#include <imgui.h>
#include <imgui_internal.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace ranklab::viz {
namespace {

constexpr int kSub = 256;  // positions per pixel

struct Clip {
  int left, top, right, bottom;
};

struct Color {
  float r, g, b, a;  // 0 .. 255
};

Color unpack(uint32_t rgba) {
  return {static_cast<float>(rgba & 255), static_cast<float>(rgba >> 8 & 255), static_cast<float>(rgba >> 16 & 255),
          static_cast<float>(rgba >> 24)};
}

Color mix(const Color& x, const Color& y, float t) {
  return {x.r + (y.r - x.r) * t, x.g + (y.g - x.g) * t, x.b + (y.b - x.b) * t, x.a + (y.a - x.a) * t};
}

Color texel(const ImTextureData& texture, int x, int y) {
  x = std::clamp(x, 0, texture.Width - 1);
  y = std::clamp(y, 0, texture.Height - 1);
  const unsigned char* at =
      texture.Pixels + (size_t(y) * size_t(texture.Width) + size_t(x)) * size_t(texture.BytesPerPixel);
  if (texture.BytesPerPixel == 1) return {255, 255, 255, static_cast<float>(at[0])};
  return {static_cast<float>(at[0]), static_cast<float>(at[1]), static_cast<float>(at[2]), static_cast<float>(at[3])};
}

Color sample(const ImTextureData& texture, float u, float v) {
  const float x = u * static_cast<float>(texture.Width) - 0.5f, y = v * static_cast<float>(texture.Height) - 0.5f;
  const float left = std::floor(x), top = std::floor(y);
  // Text is laid out on whole pixels, so an offset of 1/256 texel is only a rounding error.
  const float tx = x - left < 1.f / kSub ? 0 : x - left, ty = y - top < 1.f / kSub ? 0 : y - top;
  const int column = static_cast<int>(left), row = static_cast<int>(top);
  if (tx == 0 && ty == 0) return texel(texture, column, row);
  return mix(mix(texel(texture, column, row), texel(texture, column + 1, row), tx),
             mix(texel(texture, column, row + 1), texel(texture, column + 1, row + 1), tx), ty);
}

void blend(uint32_t& pixel, const Color& tint, const Color& texture) {
  const float alpha = tint.a * texture.a * (1.f / (255.f * 255.f));
  if (alpha <= 0) return;
  const Color under = unpack(pixel);
  const auto channel = [alpha](float over, float tex, float below) {
    return static_cast<uint32_t>(below + (over * tex * (1.f / 255.f) - below) * alpha + 0.5f);
  };
  pixel = channel(tint.r, texture.r, under.r) | channel(tint.g, texture.g, under.g) << 8 |
          channel(tint.b, texture.b, under.b) << 16 | 0xff000000u;
}

struct Corner {
  int64_t x, y;  // in 1/256 pixel
  float u, v;
  Color color;
};

Corner corner(const ImDrawVert& vertex, const ImVec2& origin, const ImVec2& scale) {
  const auto fixed = [](float value) {
    return static_cast<int64_t>(std::lround(std::clamp(value, -1e6f, 1e6f) * kSub));
  };
  return {fixed((vertex.pos.x - origin.x) * scale.x), fixed((vertex.pos.y - origin.y) * scale.y), vertex.uv.x,
          vertex.uv.y, unpack(vertex.col)};
}

// Twice the signed area of the triangle (a, b, point), and whether points exactly on the edge belong to this triangle.
struct Edge {
  int64_t dx, dy, bias, ax, ay;
  Edge(const Corner& a, const Corner& b) : dx(b.x - a.x), dy(b.y - a.y), bias(0), ax(a.x), ay(a.y) {
    const bool top_left = dy < 0 || (dy == 0 && dx > 0);
    bias = top_left ? 0 : -1;
  }
  int64_t at(int64_t x, int64_t y) const { return dx * (y - ay) - dy * (x - ax); }
};

class Triangle {
 public:
  Triangle(std::array<Corner, 3> c, const ImTextureData& texture) : c_(c), texture_(texture) {
    area_ = (c_[1].x - c_[0].x) * (c_[2].y - c_[0].y) - (c_[1].y - c_[0].y) * (c_[2].x - c_[0].x);
    if (area_ < 0) {
      std::swap(c_[1], c_[2]);
      area_ = -area_;
    }
    one_color_ = same(c_[0].color, c_[1].color) && same(c_[0].color, c_[2].color);
    one_texel_ = c_[0].u == c_[1].u && c_[0].u == c_[2].u && c_[0].v == c_[1].v && c_[0].v == c_[2].v;
    if (area_ > 0 && one_texel_) texel_ = sample(texture_, c_[0].u, c_[0].v);
  }

  void draw(Image& image, const Clip& clip) const {
    if (area_ == 0) return;
    const auto [left, right] = std::minmax({c_[0].x, c_[1].x, c_[2].x});
    const auto [top, bottom] = std::minmax({c_[0].y, c_[1].y, c_[2].y});
    const int x0 = std::max(clip.left, static_cast<int>(left / kSub) - 1);
    const int x1 = std::min(clip.right, static_cast<int>(right / kSub) + 2);
    const int y0 = std::max(clip.top, static_cast<int>(top / kSub) - 1);
    const int y1 = std::min(clip.bottom, static_cast<int>(bottom / kSub) + 2);
    const Edge e0(c_[1], c_[2]), e1(c_[2], c_[0]), e2(c_[0], c_[1]);
    for (int y = y0; y < y1; ++y) {
      const int64_t py = int64_t{y} * kSub + kSub / 2;
      uint32_t* row = image.rgba.data() + size_t(y) * size_t(image.width);
      for (int x = x0; x < x1; ++x) {
        const int64_t px = int64_t{x} * kSub + kSub / 2;
        const int64_t w0 = e0.at(px, py), w1 = e1.at(px, py), w2 = e2.at(px, py);
        if (((w0 + e0.bias) | (w1 + e1.bias) | (w2 + e2.bias)) >= 0) shade(row[x], w0, w1);
      }
    }
  }

 private:
  static bool same(const Color& x, const Color& y) { return x.r == y.r && x.g == y.g && x.b == y.b && x.a == y.a; }

  void shade(uint32_t& pixel, int64_t w0, int64_t w1) const {
    const float s = static_cast<float>(static_cast<double>(w0) / static_cast<double>(area_));
    const float t = static_cast<float>(static_cast<double>(w1) / static_cast<double>(area_));
    const auto between = [s, t](float x, float y, float z) { return z + (x - z) * s + (y - z) * t; };
    const Color &a = c_[0].color, &b = c_[1].color, &c = c_[2].color;
    const Color tint = one_color_ ? a
                                  : Color{between(a.r, b.r, c.r), between(a.g, b.g, c.g), between(a.b, b.b, c.b),
                                          between(a.a, b.a, c.a)};
    blend(
        pixel, tint,
        one_texel_ ? texel_ : sample(texture_, between(c_[0].u, c_[1].u, c_[2].u), between(c_[0].v, c_[1].v, c_[2].v)));
  }

  std::array<Corner, 3> c_;
  const ImTextureData& texture_;
  int64_t area_ = 0;
  bool one_color_ = false, one_texel_ = false;
  Color texel_ = {};
};

// Pixels stay in ImGui's memory, so a texture's id is simply the address of its description.
void answer_texture_requests(const ImDrawData& data) {
  if (data.Textures == nullptr) return;
  for (ImTextureData* texture : *data.Textures) {
    if (texture->Status == ImTextureStatus_WantCreate || texture->Status == ImTextureStatus_WantUpdates) {
      texture->SetTexID(reinterpret_cast<ImTextureID>(texture));
      texture->SetStatus(ImTextureStatus_OK);
    } else if (texture->Status == ImTextureStatus_WantDestroy) {
      texture->SetTexID(ImTextureID_Invalid);
      texture->SetStatus(ImTextureStatus_Destroyed);
    }
  }
}

Clip clip_of(const ImDrawCmd& command, const ImDrawData& data, const Image& image) {
  const ImVec2 scale = data.FramebufferScale, origin = data.DisplayPos;
  const auto pixel = [](float value, int limit) { return std::clamp(static_cast<int>(value), 0, limit); };
  return {pixel((command.ClipRect.x - origin.x) * scale.x, image.width),
          pixel((command.ClipRect.y - origin.y) * scale.y, image.height),
          pixel((command.ClipRect.z - origin.x) * scale.x, image.width),
          pixel((command.ClipRect.w - origin.y) * scale.y, image.height)};
}

void draw_list(const ImDrawList& list, const ImDrawData& data, Image& image) {
  for (const ImDrawCmd& command : list.CmdBuffer) {
    if (command.UserCallback != nullptr) continue;  // we use none; the only others reset OpenGL's state
    const Clip clip = clip_of(command, data, image);
    if (clip.left >= clip.right || clip.top >= clip.bottom) continue;
    const auto* texture = reinterpret_cast<const ImTextureData*>(command.GetTexID());
    const ImDrawVert* vertices = list.VtxBuffer.Data + command.VtxOffset;
    const ImDrawIdx* indices = list.IdxBuffer.Data + command.IdxOffset;
    for (unsigned i = 0; i + 2 < command.ElemCount; i += 3) {
      const auto at = [&](unsigned k) {
        return corner(vertices[indices[i + k]], data.DisplayPos, data.FramebufferScale);
      };
      Triangle({at(0), at(1), at(2)}, *texture).draw(image, clip);
    }
  }
}

}  // namespace

void start_software_renderer() {
  ImGuiIO& io = ImGui::GetIO();
  io.BackendRendererName = "ranklab software renderer";
  io.BackendFlags |= ImGuiBackendFlags_RendererHasTextures | ImGuiBackendFlags_RendererHasVtxOffset;
}

void stop_software_renderer() {
  for (ImTextureData* texture : ImGui::GetPlatformIO().Textures) {
    texture->SetTexID(ImTextureID_Invalid);
    texture->SetStatus(ImTextureStatus_Destroyed);
  }
  ImGuiIO& io = ImGui::GetIO();
  io.BackendRendererName = nullptr;
  io.BackendFlags &= ~(ImGuiBackendFlags_RendererHasTextures | ImGuiBackendFlags_RendererHasVtxOffset);
}

void render_software(const ImDrawData& data, Image* image, uint32_t background_rgba) {
  answer_texture_requests(data);
  if (image == nullptr) return;
  image->width = static_cast<int>(data.DisplaySize.x * data.FramebufferScale.x);
  image->height = static_cast<int>(data.DisplaySize.y * data.FramebufferScale.y);
  image->rgba.assign(size_t(image->width) * size_t(image->height), background_rgba);
  for (const ImDrawList* list : data.CmdLists) draw_list(*list, data, *image);
}

}  // namespace ranklab::viz
