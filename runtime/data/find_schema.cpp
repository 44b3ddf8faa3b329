#include "runtime/data/find_schema.hpp"

#include <cstdint>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <vector>

#include "runtime/data/bytes.hpp"

namespace cudp {
namespace {

namespace fs = std::filesystem;

/// Maximum size of a schema file [bytes].
constexpr std::uint64_t kLongestSchema = std::uint64_t{16} << 20;

TableSchema read_schema(const fs::path& path) {
  const auto reader = open_bytes(path);
  std::vector<std::uint8_t> text;
  append_bytes(*reader, kLongestSchema, text);
  expect_end(*reader, "16 MiB");
  return parse_schema({reinterpret_cast<const char*>(text.data()), text.size()}, path.string());
}

/// Returns the path of the schema file next to a table: for data.csv.gz, data.csv.gz.schema.toml or
/// else data.csv.schema.toml. Returns nullopt if neither exists.
std::optional<fs::path> schema_beside(const fs::path& table) {
  fs::path plain = table;
  if (plain.extension() == ".gz" || plain.extension() == ".xz") plain.replace_extension();
  for (const fs::path& stem : {table, plain}) {
    fs::path path = stem.string() + ".schema.toml";
    std::error_code ignored;
    if (fs::exists(path, ignored)) return path;
  }
  return std::nullopt;
}

}  // namespace

std::optional<FoundSchema> find_schema(const DataRequest& request) {
  if (const std::string_view shipped = shipped_schema(request.schema); !shipped.empty()) {
    const std::string source = request.schema + ".toml";
    return FoundSchema{parse_schema(shipped, source), source};
  }
  std::optional<fs::path> path;
  if (request.schema.empty())
    path = schema_beside(request.dataset);
  else
    path = request.schema;
  if (!path) return std::nullopt;
  return FoundSchema{read_schema(*path), path->string()};
}

}  // namespace cudp
