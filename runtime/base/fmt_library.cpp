// fmt's functions, compiled once. Debian has them as a shared library or as headers alone, and
// headers alone would add three seconds to every file that formats.
#include <fmt/format-inl.h>

FMT_BEGIN_NAMESPACE
namespace detail {
// Explicit instantiations, for char, of the templates that fmt/format.h declares extern.
template FMT_API auto thousands_sep_impl(locale_ref) -> thousands_sep_result<char>;
template FMT_API auto decimal_point_impl(locale_ref) -> char;
}  // namespace detail
FMT_END_NAMESPACE
