//! The portal's pages: files of `web/dist`, which are in the binary. They are the same for everybody; what they show they ask of the API.

use axum::Router;
use axum::extract::Path;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::get;
use serve::error::ApiError;

/// A file of the portal.
struct Page {
    path: &'static str,
    plain: &'static [u8],
    gzip: &'static [u8],
}

include!(concat!(env!("OUT_DIR"), "/pages.rs"));

/// Where files are whose names have a digest of what is in them.
const NAMED_BY_DIGEST: &str = "assets/";

/// The routes of the pages. The outermost address leads there.
pub fn routes<S: Clone + Send + Sync + 'static>() -> Router<S> {
    let to_pages = || async { Redirect::to("/ui/") };
    Router::new()
        .route("/", get(to_pages))
        .route("/ui", get(to_pages))
        .route("/ui/", get(|headers: HeaderMap| async move { file("index.html", &headers) }))
        .route(
            "/ui/{*path}",
            get(
                |Path(path): Path<String>, headers: HeaderMap| async move { file(&path, &headers) },
            ),
        )
}

fn file(path: &str, headers: &HeaderMap) -> Response {
    let Some(page) = PAGES.iter().find(|page| page.path == path) else {
        let cause = match PAGES {
            [] => "this suiro was built without the portal".into(),
            _ => format!("the portal has no {path}"),
        };
        return ApiError::of_request(StatusCode::NOT_FOUND, cause).into_response();
    };
    let takes = |header: &HeaderValue| header.to_str().is_ok_and(|text| text.contains("gzip"));
    let kept = if path.starts_with(NAMED_BY_DIGEST) {
        "public, max-age=31536000, immutable"
    } else {
        "no-cache"
    };
    let told = [
        (header::CONTENT_TYPE, kind(path)),
        (header::CACHE_CONTROL, kept),
        (header::VARY, "accept-encoding"),
    ];
    if headers.get(header::ACCEPT_ENCODING).is_some_and(takes) {
        return (told, [(header::CONTENT_ENCODING, "gzip")], page.gzip).into_response();
    }
    (told, page.plain).into_response()
}

fn kind(path: &str) -> &'static str {
    match path.rsplit('.').next() {
        Some("html") => "text/html; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        _ => "application/octet-stream",
    }
}

#[cfg(all(test, feature = "portal"))]
mod tests {
    use super::*;

    /// What a browser loads before anything is asked for: the page, and the files that it names.
    #[test]
    fn the_first_load_is_at_most_300_kb() {
        let index = PAGES.iter().find(|page| page.path == "index.html").unwrap();
        let text = std::str::from_utf8(index.plain).unwrap();
        let first =
            PAGES.iter().filter(|page| page.path == "index.html" || text.contains(page.path));
        let size: usize = first.map(|page| page.gzip.len()).sum();
        assert!((1_000..=300_000).contains(&size), "{size}");
    }

    #[test]
    fn no_page_has_a_script_or_style_of_its_own_or_names_another_origin() {
        let index = PAGES.iter().find(|page| page.path == "index.html").unwrap();
        let text = std::str::from_utf8(index.plain).unwrap();
        for bad in ["<style", "style=", "onclick", "onload", "http://", "https://"] {
            assert!(!text.contains(bad), "{bad}");
        }
        assert!(text.split("<script").skip(1).all(|script| script.contains("src=\"/ui/assets/")));
    }
}
