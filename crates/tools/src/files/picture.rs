//! Images, as large as models look at them and no larger.

use std::io::Cursor;
use std::path::Path;

use helve_protocol::{FilePart, ToolOutput};
use image::codecs::gif::GifDecoder;
use image::codecs::jpeg::JpegEncoder;
use image::codecs::png::PngEncoder;
use image::codecs::webp::WebPDecoder;
use image::imageops::FilterType;
use image::metadata::Orientation;
use image::{
    AnimationDecoder, DynamicImage, ImageDecoder, ImageError, ImageFormat, ImageReader, ImageResult, Limits,
};

use crate::{ToolContext, ToolFailure, ToolOutcome};

/// Models see no more than this, however large an image is; what is larger only costs.
const MAX_IMAGE_SIDE: u32 = 1_568;
const MAX_IMAGE_PIXELS: u64 = 1_150_000;
/// 5 MiB when it is encoded as base64, which is what providers take.
const MAX_IMAGE_BYTES: usize = (5 << 20) / 4 * 3;
/// What an image may take in memory: a small file can unpack to gigabytes.
const MAX_DECODED_IMAGE_BYTES: u64 = 256 << 20;
const JPEG_QUALITY: u8 = 85;

/// The kind of image that the first bytes announce; nothing if models can't look at it.
pub(crate) fn format_of(bytes: &[u8]) -> Option<ImageFormat> {
    use ImageFormat::{Gif, Jpeg, Png, WebP};
    image::guess_format(bytes).ok().filter(|format| matches!(format, Gif | Jpeg | Png | WebP))
}

/// An image for the model. It goes as it is if it is small, whole and upright; else a copy goes.
pub(crate) fn output(name: &str, format: ImageFormat, bytes: &[u8], context: &ToolContext) -> ToolOutcome {
    let picture = DecodedImage::read(format, bytes).map_err(|error| unreadable(name, format, &error))?;
    let size = |image: &DynamicImage| format!("{} × {}", image.width(), image.height());
    let kib = |bytes: &[u8]| bytes.len().div_ceil(1 << 10);
    let told = format!("{name}: {}, {}, {} KiB", format.to_mime_type(), size(&picture.image), kib(bytes));
    if picture.can_go_as_it_is(bytes) {
        return part(name, format, bytes, format!("[{told}]"), context);
    }
    let frame = if picture.is_animated { "the first frame as " } else { "" };
    let shown = picture.small();
    let (format, copy) = encode(&shown, format).map_err(|error| unreadable(name, format, &error))?;
    let told =
        format!("[{told}; shown: {frame}{}, {}, {} KiB]", format.to_mime_type(), size(&shown), kib(&copy));
    part(name, format, &copy, told, context)
}

/// A copy of an image that models can look at, with its kind; none if the image itself will do. What is no image is not
/// touched.
pub fn fit_image(name: &str, bytes: &[u8]) -> Result<Option<(&'static str, Vec<u8>)>, ToolFailure> {
    let Some(format) = format_of(bytes) else { return Ok(None) };
    let picture = DecodedImage::read(format, bytes).map_err(|error| unreadable(name, format, &error))?;
    if picture.can_go_as_it_is(bytes) {
        return Ok(None);
    }
    let copy = encode(&picture.small(), format).map_err(|error| unreadable(name, format, &error))?;
    Ok(Some((copy.0.to_mime_type(), copy.1)))
}

fn part(name: &str, format: ImageFormat, bytes: &[u8], text: String, context: &ToolContext) -> ToolOutcome {
    let kept = context.blobs.put_unsynced(bytes);
    let content =
        kept.map_err(|error| ToolFailure(format!("{name} can't be kept to be looked at: {error}.")))?;
    let file = FilePart {
        name: Path::new(name).file_name().unwrap_or_default().to_string_lossy().into_owned(),
        media_type: format.to_mime_type().to_owned(),
        content,
    };
    Ok(ToolOutput { text, files: vec![file], ..ToolOutput::default() })
}

fn unreadable(name: &str, format: ImageFormat, error: &ImageError) -> ToolFailure {
    let kind = format.to_mime_type();
    ToolFailure(match error {
        ImageError::Limits(_) => format!(
            "{name} ({kind}) would take more than {} MiB in memory. Use the shell to make a smaller copy.",
            MAX_DECODED_IMAGE_BYTES >> 20
        ),
        error => format!("{name} begins as {kind}, but is broken: {error}. Use the shell to look at it."),
    })
}

struct DecodedImage {
    image: DynamicImage,
    /// How it must be turned; models don't do it themselves.
    orientation: Orientation,
    is_animated: bool,
}

impl DecodedImage {
    fn read(format: ImageFormat, bytes: &[u8]) -> ImageResult<DecodedImage> {
        let mut limits = Limits::default();
        limits.max_alloc = Some(MAX_DECODED_IMAGE_BYTES);
        let mut reader = ImageReader::with_format(Cursor::new(bytes), format);
        reader.limits(limits.clone());
        let mut decoder = reader.into_decoder()?;
        limits.reserve(decoder.total_bytes())?;
        // Bad metadata is no reason not to look.
        let orientation = decoder.orientation().unwrap_or(Orientation::NoTransforms);
        let image = DynamicImage::from_decoder(decoder)?;
        Ok(DecodedImage { image, orientation, is_animated: is_animated(format, bytes)? })
    }

    fn can_go_as_it_is(&self, bytes: &[u8]) -> bool {
        let size = (self.image.width(), self.image.height());
        bytes.len() <= MAX_IMAGE_BYTES
            && fitting(size) == size
            && self.orientation == Orientation::NoTransforms
            && !self.is_animated
    }

    fn small(self) -> DynamicImage {
        let size = (self.image.width(), self.image.height());
        let (width, height) = fitting(size);
        let mut image = self.image;
        // The good filter is slow, so a quick one does the first part of the way.
        if size.0 / 2 > width && size.1 / 2 > height {
            image = image.thumbnail_exact(2 * width, 2 * height);
        }
        if (image.width(), image.height()) != (width, height) {
            image = image.resize_exact(width, height, FilterType::CatmullRom);
        }
        image.apply_orientation(self.orientation);
        image
    }
}

/// Some providers refuse images that move.
fn is_animated(format: ImageFormat, bytes: &[u8]) -> ImageResult<bool> {
    Ok(match format {
        ImageFormat::Gif => GifDecoder::new(Cursor::new(bytes))?.into_frames().take(2).count() > 1,
        ImageFormat::WebP => WebPDecoder::new(Cursor::new(bytes))?.has_animation(),
        _ => false,
    })
}

/// The size at which an image is shown, with its proportions.
fn fitting((width, height): (u32, u32)) -> (u32, u32) {
    let [w, h] = [width, height].map(|side| u64::from(side.max(1)));
    let longest = u64::from(MAX_IMAGE_SIDE);
    let wide = w.min(w * longest / w.max(h)).min((MAX_IMAGE_PIXELS * w / h).isqrt()).max(1);
    let high = (h * wide / w).clamp(1, longest);
    let side = |side: u64| u32::try_from(side).unwrap_or(MAX_IMAGE_SIDE);
    (side(wide), side(high))
}

/// Photos as JPEG; what has sharp edges or is transparent as PNG, unless that gets too large.
fn encode(image: &DynamicImage, from: ImageFormat) -> ImageResult<(ImageFormat, Vec<u8>)> {
    let is_photo = from == ImageFormat::Jpeg || (from == ImageFormat::WebP && !image.color().has_alpha());
    if !is_photo {
        let png = if image.color().has_alpha() {
            encoded(|bytes| image.to_rgba8().write_with_encoder(PngEncoder::new(bytes)))?
        } else {
            encoded(|bytes| image.to_rgb8().write_with_encoder(PngEncoder::new(bytes)))?
        };
        if png.len() <= MAX_IMAGE_BYTES {
            return Ok((ImageFormat::Png, png));
        }
    }
    let jpeg = |bytes: &mut Vec<u8>| {
        image.to_rgb8().write_with_encoder(JpegEncoder::new_with_quality(bytes, JPEG_QUALITY))
    };
    Ok((ImageFormat::Jpeg, encoded(jpeg)?))
}

fn encoded(write: impl FnOnce(&mut Vec<u8>) -> ImageResult<()>) -> ImageResult<Vec<u8>> {
    let mut bytes = Vec::new();
    write(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn sizes_fit() {
        assert_eq!(fitting((640, 480)), (640, 480));
        assert_eq!(fitting((1_568, 733)), (1_568, 733));
        assert_eq!(fitting((4_000, 3_000)), (1_238, 928));
        assert_eq!(fitting((10_000, 1_000)), (1_568, 156));
        assert_eq!(fitting((1, 100_000)), (1, 1_568));
    }

    proptest! {
        #[test]
        fn any_size_fits(width: u32, height: u32) {
            let (wide, high) = fitting((width, height));
            prop_assert!((1..=MAX_IMAGE_SIDE).contains(&wide) && (1..=MAX_IMAGE_SIDE).contains(&high));
            prop_assert!(u64::from(wide) * u64::from(high) <= MAX_IMAGE_PIXELS);
            prop_assert_eq!(fitting((wide, high)), (wide, high), "what fits stays");
        }

        #[test]
        fn any_bytes_are_an_image_or_none(head in 0..4_usize, rest in prop::collection::vec(any::<u8>(), 0..200)) {
            let heads: [&[u8]; 4] = [b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff\xe0", b"GIF89a", b"RIFF\x10\0\0\0WEBPVP8 "];
            let bytes = [heads[head], &rest].concat();
            let format = format_of(&bytes).unwrap();
            let _ = DecodedImage::read(format, &bytes);
        }
    }
}
