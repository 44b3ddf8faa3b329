#include "runtime/data/foreign.hpp"

#include <algorithm>

#include "runtime/data/bytes.hpp"
#include "runtime/data/utf8.hpp"

namespace cudp {
namespace {

using namespace std::string_view_literals;

/// A kind of file that is not a text table: the bytes with which such a file starts (start), and
/// what it is, with advice to the user (what).
struct Kind {
  std::string_view start;
  std::string_view what;
};

constexpr std::string_view kToUtf8 = "; iconv -f UTF-16 -t UTF-8 FILE > NEW makes it UTF-8";

constexpr Kind kKinds[] = {
    {"\x93NUMPY"sv, "a NumPy array; let its name end in .npy"},
    {"PK\x03\x04"sv,
     "a zip archive; let its name end in .npz if NumPy made it, save it as CSV if it is a "
     "workbook"},
    {"PK\x05\x06"sv, "an empty zip archive"},
    {"PAR1"sv, "a Parquet file; save it as CSV"},
    {"ARROW1"sv, "an Arrow file; save it as CSV"},
    {"\x89HDF"sv, "an HDF5 file; save it as CSV or .npy"},
    {"SQLite format 3"sv, "an SQLite database; save the table as CSV"},
    {"\xd0\xcf\x11\xe0"sv, "an old Excel file (.xls); save it as CSV"},
    {"%PDF"sv, "a PDF"},
    {"\x89PNG"sv, "a PNG picture"},
    {"\xff\xd8\xff"sv, "a JPEG picture"},
    {"BZh"sv, "a bzip2 archive; bunzip2 unpacks it"},
    {"\x28\xb5\x2f\xfd"sv, "a Zstandard archive; unzstd unpacks it"},
    {"7z\xbc\xaf"sv, "a 7-Zip archive"},
    {"\x1f\x8b"sv, "gzip data; let its name end in .gz"},
    {"\xfd"
     "7zXZ"sv,
     "xz data; let its name end in .xz"},
    {"\x80\x04\x95"sv, "a Python pickle; save it as CSV or .npy"},
    {"\x7f"
     "ELF"sv,
     "a program"},
};

}  // namespace

const std::string_view kIconvAdvice = "; iconv -f LATIN1 -t UTF-8 FILE > NEW makes it UTF-8";

std::string describe_foreign(std::span<const std::uint8_t> head) {
  const std::string_view text(reinterpret_cast<const char*>(head.data()), head.size());
  for (const Kind& kind : kKinds)
    if (text.starts_with(kind.start)) return std::string(kind.what);
  if (text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff"))
    return "UTF-16 text" + std::string(kToUtf8);
  // Every other byte of ASCII text stored as UTF-16 is zero.
  const auto zeros = [&](std::size_t first) {
    std::size_t n = 0;
    for (std::size_t i = first; i < text.size(); i += 2) n += text[i] == '\0' ? 1 : 0;
    return n;
  };
  if (text.size() >= 8 && std::max(zeros(0), zeros(1)) * 2 > text.size() * 3 / 4)
    return "UTF-16 text" + std::string(kToUtf8);
  if (text.find('\0') != std::string_view::npos) return "a binary file";
  return {};
}

std::string encoding_fault(std::string_view text) {
  if (is_utf8(text)) return {};
  return shown(text) + ", which is not UTF-8 but perhaps Latin-1" + std::string(kIconvAdvice);
}

std::string other_delimiter(std::string_view line, char delimiter) {
  char best = '\0';
  std::ptrdiff_t most = 0;
  for (const char c : {',', ';', '\t', '|'}) {
    if (c == delimiter) continue;
    const std::ptrdiff_t n = std::count(line.begin(), line.end(), c);
    if (n > most) {
      most = n;
      best = c;
    }
  }
  if (most == 0) return {};
  const std::string name = best == '\t' ? "\\t" : std::string(1, best);
  return "; the line has " + std::to_string(most) + " '" + name + "': perhaps delimiter = \"" +
         name + "\" in its schema, or cudp schema --delimiter \"" + name + "\"";
}

}  // namespace cudp
