#include "runtime/data/glyphs.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "runtime/data/dice.hpp"
#include "runtime/data/glyph_shapes.hpp"
#include "runtime/data/range.hpp"
#include "runtime/data/sources.hpp"

// The images are the same on every machine: this file uses only +, -, *, / and sqrt, which IEEE 754
// defines exactly (no libm), and is compiled without contraction into fused multiply-adds.

namespace cudp {
namespace {

constexpr std::uint64_t kGlyphSeed = 1;
constexpr std::size_t kGlyphTrain = 12'000;
constexpr std::size_t kGlyphTest = 2'000;
constexpr int kSide = 28;
constexpr int kPixels = kSide * kSide;
constexpr int kPiecesPerCurve = 4;  // straight pieces between two points of a smooth stroke

/// Affine map from the coordinates in which a digit's shape is given to pixels of the image.
struct Affine {
  double xx, xy, yx, yy, x0, y0;

  Point operator()(const Point& p) const {
    return {xx * p.x + xy * p.y + x0, yx * p.x + yy * p.y + y0};
  }
};

Affine random_map(Dice& dice) {
  constexpr double kHalfAngle = 0.18;  // tangent of half the largest rotation: 20 degrees
  const double t = dice.uniform(-kHalfAngle, kHalfAngle);
  const double cosine = (1 - t * t) / (1 + t * t);
  const double sine = 2 * t / (1 + t * t);
  const double shear = dice.uniform(-0.3, 0.3);
  const double width = dice.uniform(6.5, 11.0);  // pixels for one unit of the shape's box
  const double height = dice.uniform(7.5, 10.5);
  const double x0 = 0.5 * kSide + dice.uniform(-2.9, 2.9);
  const double y0 = 0.5 * kSide + dice.uniform(-2.9, 2.9);
  return {cosine * width,
          (cosine * shear - sine) * height,
          sine * width,
          (sine * shear + cosine) * height,
          x0,
          y0};
}

Point catmull_rom(const Point& a, const Point& b, const Point& c, const Point& d, double t) {
  const auto blend = [t](double p, double q, double r, double s) {
    return q + 0.5 * t * (r - p + t * (2 * p - 5 * q + 4 * r - s + t * (3 * (q - r) + s - p)));
  };
  return {blend(a.x, b.x, c.x, d.x), blend(a.y, b.y, c.y, d.y)};
}

/// Returns the corners of the polyline that the pen follows through the points of a stroke. smooth:
/// whether the stroke is a Catmull-Rom curve; each curve segment between two points then becomes
/// kPiecesPerCurve straight lines.
std::vector<Point> pen_path(const std::vector<Point>& points, bool smooth) {
  if (!smooth) return points;
  std::vector<Point> path;
  const std::size_t n = points.size();
  for (std::size_t i = 0; i + 1 < n; ++i)
    for (int k = 0; k < kPiecesPerCurve; ++k)
      path.push_back(catmull_rom(points[i > 0 ? i - 1 : 0], points[i], points[i + 1],
                                 points[std::min(i + 2, n - 1)],
                                 static_cast<double>(k) / kPiecesPerCurve));
  path.push_back(points.back());
  return path;
}

/// Grey image in floats on which a digit is drawn.
class Canvas {
 public:
  /// Draws a straight line from a to b with round ends and a soft edge one pixel wide. width: width
  /// of the line [pixels]. ink: amount of ink, at most 1. Where lines overlap, a pixel keeps the
  /// larger amount.
  void draw(const Point& a, const Point& b, double width, double ink) {
    const double reach = 0.5 * width + 0.5;
    const int x0 = clip(std::min(a.x, b.x) - reach), x1 = clip(std::max(a.x, b.x) + reach);
    const int y0 = clip(std::min(a.y, b.y) - reach), y1 = clip(std::max(a.y, b.y) + reach);
    const double dx = b.x - a.x, dy = b.y - a.y;
    const double length2 = std::max(dx * dx + dy * dy, 1e-9);
    for (int y = y0; y <= y1; ++y)
      for (int x = x0; x <= x1; ++x) {
        const double px = x + 0.5 - a.x, py = y + 0.5 - a.y;
        const double t = std::clamp((px * dx + py * dy) / length2, 0.0, 1.0);
        const double ex = px - t * dx, ey = py - t * dy;
        const double cover = std::clamp(reach - std::sqrt(ex * ex + ey * ey), 0.0, 1.0);
        double& pixel = pixels_[y * kSide + x];
        pixel = std::max(pixel, ink * cover);
      }
  }

  /// Blurs the image: replaces each pixel by a weighted mean of it and its two neighbours, along
  /// one axis and then along the other. side: weight of each neighbour, up to 1/3.
  void blur(double side) {
    blur_lines(side, 1, kSide);
    blur_lines(side, kSide, 1);
  }

  const std::array<double, kPixels>& pixels() const { return pixels_; }

 private:
  static int clip(double at) {
    return static_cast<int>(std::clamp(at, 0.0, static_cast<double>(kSide - 1)));
  }

  void blur_lines(double side, int step, int line) {
    for (int l = 0; l < kSide; ++l) {
      double before = 0.0;
      for (int i = 0; i < kSide; ++i) {
        double& pixel = pixels_[l * line + i * step];
        const double after = i + 1 < kSide ? (&pixel)[step] : 0.0;
        const double old = pixel;
        pixel = (1 - 2 * side) * old + side * (before + after);
        before = old;
      }
    }
  }

  std::array<double, kPixels> pixels_{};
};

void draw_path(Canvas& canvas, const std::vector<Point>& path, double width, double ink) {
  for (std::size_t i = 0; i + 1 < path.size(); ++i) canvas.draw(path[i], path[i + 1], width, ink);
}

void draw_digit(Canvas& canvas, int digit, Dice& dice) {
  constexpr double kJitter = 0.12;  // relative to the shape's box, for each point separately
  const Affine map = random_map(dice);
  const double width = dice.uniform(1.4, 3.4);
  for (const PenStroke& stroke : digit_strokes(digit)) {
    std::vector<Point> points;
    for (const Point& p : stroke.points)
      points.push_back(
          map({p.x + dice.uniform(-kJitter, kJitter), p.y + dice.uniform(-kJitter, kJitter)}));
    draw_path(canvas, pen_path(points, stroke.smooth), width, 1.0);
  }
}

/// Draws short faint strokes as noise, which are not part of the digit. canvas: the image. dice:
/// source of the random numbers.
void draw_stray(Canvas& canvas, Dice& dice) {
  const int strokes = static_cast<int>(dice.word() % 3);
  for (int i = 0; i < strokes; ++i) {
    const Point a = {dice.uniform(0, kSide), dice.uniform(0, kSide)};
    const Point b = {a.x + dice.uniform(-7, 7), a.y + dice.uniform(-7, 7)};
    const double width = dice.uniform(1.0, 2.2);
    canvas.draw(a, b, width, dice.uniform(0.3, 0.8));
  }
}

/// Returns an approximately standard normal number: the scaled sum of the four bytes of `bytes`,
/// which are random.
double rough_normal(std::uint32_t bytes) {
  const int sum =
      static_cast<int>((bytes & 255u) + (bytes >> 8 & 255u) + (bytes >> 16 & 255u) + (bytes >> 24));
  constexpr double kDeviation = 147.8005413;  // sqrt(4 (256^2 - 1) / 12)
  return (sum - 510) / kDeviation;
}

/// Converts the image on `canvas` to bytes, [28, 28], and writes them to `out`. The background, the
/// contrast, the slope of the light and the noise of the pixels are random. dice: source of the
/// random numbers.
void develop(const Canvas& canvas, Dice& dice, std::uint8_t* out) {
  const double paper = dice.uniform(0.0, 50.0);
  const double ink = dice.uniform(130.0, 255.0) - paper;
  const double slope_x = dice.uniform(-1.2, 1.2), slope_y = dice.uniform(-1.2, 1.2);
  const double noise = dice.uniform(5.0, 32.0);
  std::uint64_t bits = 0;
  for (int i = 0; i < kPixels; ++i) {
    bits = i % 2 == 0 ? dice.word() : bits >> 32;
    const int right = i % kSide - kSide / 2, down = i / kSide - kSide / 2;
    const double light = slope_x * right + slope_y * down;
    const double value = paper + light + ink * canvas.pixels()[i] +
                         noise * rough_normal(static_cast<std::uint32_t>(bits));
    out[i] = static_cast<std::uint8_t>(std::clamp(value + 0.5, 0.0, 255.0));
  }
}

}  // namespace

Dataset make_glyphs(std::uint64_t seed, std::size_t first, std::size_t count) {
  Dataset set;
  set.shape = {1, kSide, kSide};
  set.classes = 10;
  set.bytes.resize(count * kPixels);
  set.labels.resize(count);
  for (std::size_t i = 0; i < count; ++i) {
    const int digit = static_cast<int>((first + i) % 10);
    Dice dice(seed, first + i);
    Canvas canvas;
    draw_digit(canvas, digit, dice);
    draw_stray(canvas, dice);
    canvas.blur(dice.uniform(0.0, 0.25));
    develop(canvas, dice, &set.bytes[i * kPixels]);
    set.labels[i] = static_cast<std::uint8_t>(digit);
  }
  return set;
}

DataSplit load_glyphs(const DataRequest& request) {
  const auto part = [&](std::size_t first, std::size_t count) {
    const ExampleRange range = request.share.of(count);
    Dataset set = make_glyphs(kGlyphSeed, first + range.begin, range.size());
    record_range(set, request.share, count);
    return set;
  };
  DataSplit split;
  split.train = part(0, kGlyphTrain);
  split.test = part(kGlyphTrain, kGlyphTest);
  return split;
}

}  // namespace cudp
