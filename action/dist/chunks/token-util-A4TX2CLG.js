import{createRequire as createRequireOfNode}from'node:module';const require=createRequireOfNode(import.meta.url);
import{c as a}from"./chunk-WEPK6EZB.js";import"./chunk-F5L3GQKF.js";export default a();
