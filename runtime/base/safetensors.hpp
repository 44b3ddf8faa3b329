#pragma once
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "models/model.hpp"

namespace cudp {

/// Parameters by name, with shapes, and a map of texts: what a safetensors file holds.
struct TensorFile {
  std::vector<ParameterTensor> tensors;  ///< name, shape, offset and size are used
  std::vector<float> values;             ///< the tensors, at their offsets
  std::map<std::string, std::string> metadata;
};

/// The bytes of a safetensors file: 64-bit header length, JSON header, float32 data that starts at
/// a multiple of 64 bytes. The same input gives the same bytes.
std::string encode_safetensors(const TensorFile& file);

/// Reads what encode_safetensors, or any other writer of float32 tensors, made. `source` names the
/// file in errors. Throws InputError on anything malformed.
TensorFile decode_safetensors(std::string_view bytes, const std::string& source);

/// Rows of numbers, row-major.
struct Matrix {
  int rows = 0;
  int columns = 0;
  std::vector<float> values;  ///< [rows, columns]
};

/// One matrix of a safetensors file, of float32 or float16 numbers: the tensor of that name, or
/// where `name` is empty the only one with two dimensions. What else the file holds may be of any
/// type. Throws InputError, naming the tensors there are where the name does not decide; and on a
/// number that is not finite.
Matrix decode_matrix(std::string_view bytes, const std::string& source, const std::string& name);

}  // namespace cudp
