#include "runtime/data/array_layout.hpp"

#include "runtime/data/bytes.hpp"
#include "runtime/data/schema.hpp"

namespace cudp {
namespace {

/// Returns the shape of an array of examples as NumPy shows it, with N in place of the number of
/// examples, which may be private: "(N, 28, 28)". sides: the other dimensions.
std::string shape_of_any(std::span<const std::uint64_t> sides) {
  std::string text = "(N";
  for (const std::uint64_t side : sides) text += ", " + std::to_string(side);
  return text + (sides.empty() ? ",)" : ")");
}

std::string sides_text(const Shape& shape) {
  return std::to_string(shape.channels) + "x" + std::to_string(shape.height) + "x" +
         std::to_string(shape.width);
}

/// Guesses from an example's three dimensions whether they are in the order height, width,
/// channels. Returns true if the last one is 1, 3 or 4, and smaller than the other two.
bool has_channels_last(std::span<const std::uint64_t> sides) {
  const std::uint64_t last = sides[2];
  return (last == 1 || last == 3 || last == 4) && sides[0] > last && sides[1] > last;
}

/// Checks an array against the example shape that the user states (--input-shape, --channels-last).
/// Throws InputError if the dimensions differ. sides: dimensions of one example in the array,
/// without the number of examples. channels_last: whether the user states the order height, width,
/// channels.
void check_stated(const std::string& name, std::span<const std::uint64_t> sides, const Shape& shape,
                  bool channels_last) {
  std::vector<std::uint64_t> expected;
  for (const int side : channels_last ? std::vector<int>{shape.height, shape.width, shape.channels}
                                      : std::vector<int>{shape.channels, shape.height, shape.width})
    expected.push_back(static_cast<std::uint64_t>(side));
  std::uint64_t numbers = 1;
  for (const std::uint64_t side : sides) numbers *= side;
  // The array of images with one channel may lack the dimension of the channels.
  std::vector<std::uint64_t> bare = expected;
  if (shape.channels == 1) bare.erase(channels_last ? bare.end() - 1 : bare.begin());
  const std::vector<std::uint64_t> found(sides.begin(), sides.end());
  const bool flat = sides.size() == 1 && numbers == static_cast<std::uint64_t>(shape.size());
  if (flat || found == expected || found == bare) return;
  const std::vector<std::uint64_t> last = {static_cast<std::uint64_t>(shape.height),
                                           static_cast<std::uint64_t>(shape.width),
                                           static_cast<std::uint64_t>(shape.channels)};
  bad_input(
      name, "",
      "examples of " + sides_text(shape) + " (--input-shape): the shape " + shape_of_any(expected) +
          " or (N, " + std::to_string(shape.size()) + ")",
      "the shape " + shape_of_any(sides) + (found == last ? "; --channels-last reads it" : ""));
}

}  // namespace

std::string ArrayLayout::place_of(std::size_t at) const {
  std::string text;
  for (std::size_t i = sides.size(); i-- > 0;) {
    text.insert(0, std::to_string(at % sides[i]) + (text.empty() ? "" : ", "));
    at /= sides[i];
  }
  return sides.size() == 1 ? text : "[" + text + "]";
}

ArrayLayout array_layout(const std::string& name, const std::string& type,
                         std::span<const std::uint64_t> sides, const ArrayForm& form) {
  ArrayLayout layout;
  layout.is_bytes = type == "|u1";
  if (!layout.is_bytes && (type.size() < 2 || type[1] != 'f'))
    bad_input(name, "",
              "numbers of type float16, float32, float64 or uint8; x.astype(np.float32) makes such",
              "type " + type);
  const auto own = sides.subspan(sides.empty() ? 0 : 1);
  const std::string found = "the shape " + shape_of_any(own);
  std::uint64_t numbers = own.empty() ? 0 : 1;
  for (const std::uint64_t side : own) {
    const auto limit = static_cast<std::uint64_t>(kMaxFeatures);
    numbers = side == 0 || numbers > limit / side ? 0 : numbers * side;
    if (numbers == 0) break;
  }
  if (numbers == 0 || own.size() > 3)
    bad_input(name, "",
              "a matrix [N, D], or images [N, H, W] or [N, C, H, W], with 1 to " +
                  std::to_string(kMaxFeatures) + " numbers in each example",
              found + (own.size() > 3 ? "; x.reshape(len(x), -1) makes a matrix" : ""));
  layout.sides.assign(own.begin(), own.end());
  const auto side = [&](std::size_t i) { return static_cast<int>(own[i]); };
  if (form.shape) {
    check_stated(name, own, *form.shape, form.channels_last);
    layout.shape = *form.shape;
  } else if (own.size() == 1) {
    layout.shape = {side(0), 1, 1};
    if (form.shape_of_rows && form.shape_of_rows->size() == side(0))
      layout.shape = *form.shape_of_rows;
    else if (form.channels_last)
      bad_input(name, "", "--input-shape CxHxW with --channels-last and a matrix",
                "none; the rows have " + std::to_string(own[0]) + " numbers");
  } else if (own.size() == 2) {
    layout.shape = {1, side(0), side(1)};
  } else if (form.channels_last) {
    layout.shape = {side(2), side(0), side(1)};
  } else {
    if (has_channels_last(own))
      bad_input(name, "",
                "images [N, C, H, W]; --channels-last reads [N, H, W, C], --input-shape " +
                    sides_text({side(0), side(1), side(2)}) + " states that channels are first",
                found);
    layout.shape = {side(0), side(1), side(2)};
  }
  layout.channels_last = form.channels_last && layout.shape.channels > 1;
  return layout;
}

}  // namespace cudp
